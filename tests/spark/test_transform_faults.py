"""Transformed topics under faults, on real Spark and real brokers: each record arrives once, in order, and every offset of the
source translates exactly. `make soak ARGS="--transform"` draws faults at random for longer."""

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from strait.config.links import parse
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.launch.local import LocalLauncher
from strait.reasons import Reason
from strait.state.reader import StateReader
from strait.state.report_records import PartitionReport
from strait.state.schema import TopicPolicy
from support.fixtures.background import beside
from support.fixtures.clusters import Clusters
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.producers import FORGETFUL, until_forgotten
from support.links.links import Link, link_of
from support.links.processes import StartsProcesses
from support.links.transforming import instance, kill, parts, started, suspended
from support.links.transforms import Writer, assert_transformed, missing, transform, write_until
from support.soak.transforms import transform_rounds

UNCHANGED = '{"changed": {}, "clock_jumps_seconds": 0}'

pytestmark = [pytest.mark.spark, pytest.mark.broker]


@pytest.fixture
def other(link: Link, tmp_path: Path) -> Iterator[Link]:
    """Another application of the same link, with a driver of its own."""
    other = instance(link, tmp_path, 1)
    yield other
    other.kill_everything()


def written(link: Link, seed: int, *, transactional: bool = False) -> Writer:
    return Writer(link.source, link.name, link.partitions, seed, transactional=transactional)


def until_copied(link: Link, writer: Writer) -> None:
    def left() -> list[int]:
        return missing(link.destination, link.name, writer.kept)

    link.until(lambda: not any(left()), "all is copied")


def assert_equal(link: Link) -> None:
    assert_transformed(link.source, link.destination, link.name, link.name, link.partitions)


@contextmanager
def writing(writer: Writer, seed: int) -> Iterator[None]:
    """Write in the background."""

    def write(stop: threading.Event) -> None:
        write_until(stop, [writer], Random(seed), per_second=800.0)

    with beside(write):
        yield


def reports(link: Link) -> list[PartitionReport]:
    """The newest report of each partition."""
    newest: dict[int, tuple[int, PartitionReport]] = {}
    with StateReader(link.destination.client_properties, "destination", link.name, follow=("reports",)) as state:
        state.catch_up(30)
    for report in (report for some in state.reports.values() for report in some):
        for row in report.partitions:
            newest[row.partition] = max(
                newest.get(row.partition, (0, row)), (report.at_ms, row), key=lambda pair: pair[0]
            )
    return [row for _, row in newest.values()]


def publish(link: Link, folder: Path, **changes: object) -> None:
    link.publish(slots=1, policy=TopicPolicy(transform=transform(folder, **changes)))


def test_a_suspended_slot_and_the_one_that_took_over_copy_each_record_once(
    link: Link, other: Link, tmp_path: Path
) -> None:
    """It is suspended while records of it are in flight, in the slot, in Spark, or both; and continued under load."""
    publish(link, tmp_path)
    writer = written(link, 1)
    writer.produce(500)
    started(link)
    until_copied(link, writer)
    started(other)
    eventually(lambda: parts(other)["slot"], what="the other one's slot runs", within_seconds=180)
    with writing(writer, 1):
        for names in (("slot",), ("second",), ("jvm",), ("slot", "second", "jvm", "driver")):
            writer_before = list(writer.kept)
            with suspended([process for name in names for process in parts(link)[name]]):
                eventually(
                    lambda before=writer_before: (
                        sum(ends(link.destination, link.name, link.partitions)) > sum(before) + 500
                    ),
                    what=lambda: f"the other one goes on: {other.log()}",
                    within_seconds=120,
                )
    until_copied(link, writer)
    kill([*parts(other)["slot"], *parts(other)["driver"]])
    writer.produce(500)
    until_copied(link, writer)
    assert_equal(link)


def test_transactions_arrive_once_though_the_broker_forgets_the_producer(tmp_path: Path, clusters: Clusters) -> None:
    """Whatever is killed, aborted ones stay away."""
    with Cluster(tmp_path / "forgetful", properties=FORGETFUL) as destination:
        launcher = LocalLauncher(tmp_path / "applications")
        link = link_of(f"forgetful-{tmp_path.name[-20:]}", Clusters(clusters.source, destination), tmp_path, launcher)
        try:
            publish(link, tmp_path)
            writer = written(link, 2, transactional=True)
            for _ in range(5):
                writer.produce(400)
            started(link)
            until_copied(link, writer)
            for victim in ("slot", "second", "everything", "slot"):
                until_forgotten(link, link.name)
                for _ in range(5):
                    writer.produce(300)
                if victim == "everything":
                    link.kill_everything()
                    started(link)
                else:
                    kill(parts(link)[victim])
                writer.produce(50)
                until_copied(link, writer)
            assert_equal(link)
        finally:
            link.kill_everything()


def test_a_rule_that_keeps_nothing_for_long_advances_and_starts_behind_what_it_left_out(
    link: Link, tmp_path: Path
) -> None:
    publish(link, tmp_path)
    writer = written(link, 3)
    writer.produce(500)
    writer.only_left_out = True
    writer.produce(6_000)
    started(link)
    sources = ends(link.source, link.name, link.partitions)

    def positions() -> list[int]:
        return [row.position for row in sorted(reports(link), key=lambda row: row.partition)]

    link.until(lambda: positions() == sources, "the reports have all that was left out behind them")
    assert {row.reason for row in reports(link)} == {None}
    assert_equal(link)
    link.publish(slots=1, stopped=True, policy=TopicPolicy(transform=transform(tmp_path)))
    link.until_ended()
    with StateReader(link.destination.client_properties, "destination", link.name, follow=("map",)) as state:
        state.catch_up(30)
        starts = [max(run.source_base for run in state.runs[link.name, n]) for n in range(link.partitions)]
    assert starts == sources, "the next start reads nothing of it again"
    publish(link, tmp_path)
    started(link)
    writer.only_left_out = False
    writer.produce(500)
    until_copied(link, writer)
    assert_equal(link)


@dataclass
class Slots(StartsProcesses):
    folder: Path
    _running: list[subprocess.Popen[bytes]] = field(default_factory=list)


def controlled(link: Link, name: str, way: tuple[Cluster, Cluster], topics: dict[str, Any]) -> Control:
    """The real control plane of a link between these clusters."""
    clusters = {"a": link.source.client_properties, "b": link.destination.client_properties}
    source, destination = ("a" if end is link.source else "b" for end in way)
    block = {"source": source, "destination": destination, "topics": topics, "pool": False}
    return Control(parse({"clusters": clusters, "links": {name: block}}, where="links file"), name)


def rule(link: Link, folder: Path, **changes: str) -> dict[str, Any]:
    """The rule of `support.links.transforms.transform`."""
    made = transform(folder)
    fields = {"set": dict(made.set_fields), "drop": list(made.drop_fields), "rename": dict(made.rename_fields)}
    parsing = {"value": "json", "schema": made.json_schema}
    block = {"format": parsing, "where": made.where, "key": made.key, "fields": fields, "malformed": made.malformed}
    block |= {"secrets": dict(made.secrets)} | changes
    return {"include": [link.name], "rules": [{"match": link.name, "transform": block}]}


def applied(link: Link, control: Control) -> None:
    """Publish what the control plane plans, and use its spec."""
    plan = control.apply().plan
    directories = {"ledger_dir": link.folder / "ledger", "checkpoint_dir": link.folder / "checkpoint"}
    link.spec = control.spec(plan, **directories)


def test_a_rule_that_changes_while_an_old_instance_sleeps_adds_nothing_to_the_copy(
    link: Link, other: Link, tmp_path: Path
) -> None:
    """By a plan that is published all the same; the control plane halts the topic already."""
    publish(link, tmp_path)
    writer = written(link, 4)
    started(link)
    writer.produce(500)
    until_copied(link, writer)

    def halted() -> bool:
        return {row.reason for row in reports(link)} == {Reason.TRANSFORM_CHANGED}

    with writing(writer, 4):
        with suspended([process for some in parts(link).values() for process in some]):
            publish(link, tmp_path, where="v.country = 'US'")
            started(other)
            other.until(halted, "the new rule is not followed into the old copy")
            copied = link.copied()
            other.kill_everything()
        writer.produce(500)
        eventually(lambda: missing(link.destination, link.name, writer.kept), what="there is more to copy")
        link.until(halted, "nor by the old instance")
    assert link.copied() <= copied + 1_000, "at most what was on its way"
    publish(link, tmp_path)
    until_copied(link, writer)
    assert_equal(link)


def test_transformed_records_do_not_come_back_over_the_other_direction_of_a_two_way_link(
    link: Link, tmp_path: Path
) -> None:
    """There they are known by the producer that wrote them, as other copies are."""
    writer, back = written(link, 5), f"back-{link.name[-40:]}"
    there = controlled(link, link.name, (link.source, link.destination), rule(link, tmp_path))
    plain = {"include": [link.name], "rules": [{"match": link.name, "on_foreign": "expect"}]}
    with there as control, controlled(link, back, (link.destination, link.source), plain) as other:
        applied(link, control)
        spec = other.spec(other.apply().plan, ledger_dir=tmp_path / "l", checkpoint_dir=tmp_path / "c")
        spec.write(tmp_path / "back.json")
        returning = Slots(tmp_path)
        try:
            returning.start_process("support.links.slot_process", str(tmp_path / "back.json"), "0", UNCHANGED)
            started(link)
            for _ in range(3):
                writer.produce(700)
                until_copied(link, writer)
                kill(parts(link)["slot"])
            eventually(
                lambda: [status.lag_records for status in other.statuses()] == [0],
                what=lambda: f"the other direction has seen all: {other.statuses()} {returning.log()}",
            )
        finally:
            returning.stop()
    assert sum(ends(link.source, link.name, link.partitions)) == writer.count
    assert_equal(link)


@pytest.mark.timeout(900)
def test_a_few_faults_at_random_leave_every_record_and_offset_right(tmp_path: Path) -> None:
    lines: list[str] = []
    transform_rounds(tmp_path, 40, lines.append, faults=4)
