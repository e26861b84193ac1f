"""Topics that are transformed on the way, on real Spark and real brokers: record by record what the rule says, once and in
order, whatever is killed."""

import contextlib
import random
from pathlib import Path

import psutil
import pytest

from strait.config.links import Spark
from strait.launch.base import State
from strait.state.reader import StateReader
from strait.state.schema import TopicPolicy
from strait.state.transform import TopicTransform
from support.fixtures.waiting import eventually
from support.kafka.records import read
from support.links.links import Link
from support.links.transforms import SALT, Writer, assert_transformed, transform, transformed

pytestmark = [pytest.mark.spark, pytest.mark.broker]


def written(link: Link, seed: int) -> Writer:
    return Writer(link.source, link.name, link.partitions, seed)


def until_all_is_there(link: Link, within_seconds: float = 240.0) -> None:
    wanted = sum(transformed(record) is not None for _, record in read(link.source, link.name, link.partitions))
    link.until(lambda: link.copied() >= wanted, f"{wanted} records are copied", within_seconds)
    assert_transformed(link.source, link.destination, link.name, link.name, link.partitions)


@pytest.mark.core
def test_records_are_filtered_masked_and_set_aside(link: Link, tmp_path: Path) -> None:
    source = written(link, 1)
    source.produce(4_000)
    link.publish(slots=1, policy=TopicPolicy(transform=transform(tmp_path)))
    link.submit(ledger_seconds=3600)
    until_all_is_there(link)
    for _ in range(3):
        source.produce(5)
        until_all_is_there(link)
    source.produce(4_000)
    until_all_is_there(link)
    sources = read(link.source, link.name, link.partitions)
    assert any(record.value is not None and b"secret" in record.value for _, record in sources)
    copies = [*read(link.destination, link.name, link.partitions)]
    copies += read(link.destination, f"strait.{link.name}.quarantine", 1)
    assert not [record for _, record in copies if b"secret" in (record.value or b"")], "nothing that is dropped arrives"
    assert SALT not in link.log()
    link.publish(slots=1, stopped=True)
    assert link.until_ended().state is State.FINISHED


def test_records_are_transformed_by_an_executor(link: Link, tmp_path: Path, standalone_master: str) -> None:
    link.spark = Spark(master=standalone_master)
    written(link, 2).produce(2_000)
    link.publish(slots=1, policy=TopicPolicy(transform=transform(tmp_path)))
    link.submit(ledger_seconds=3600)
    until_all_is_there(link)


@pytest.mark.parametrize("seed", [1])
def test_whatever_is_killed_each_record_arrives_once(link: Link, tmp_path: Path, seed: int) -> None:
    rng, source = random.Random(seed), written(link, seed)
    source.produce(2_000)
    link.publish(slots=1, policy=TopicPolicy(transform=transform(tmp_path)))
    link.submit(ledger_seconds=3600)
    link.until(lambda: link.copied() > 0, "it copies")
    for _ in range(4):
        source.produce(rng.randrange(1, 3_000))
        victim = eventually(link.slot_process, what="a worker runs the slot", within_seconds=120)
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
    link.kill_everything()
    source.produce(1_000)
    link.submit(ledger_seconds=3600)
    until_all_is_there(link)


def test_an_expression_that_spark_refuses_stops_its_topic_and_says_why(link: Link, tmp_path: Path) -> None:
    written(link, 3).produce(100)
    link.publish(slots=1, policy=TopicPolicy(transform=TopicTransform(where="rand() < 0.5")))
    link.submit(ledger_seconds=3600)
    found: dict[str, str] = {}

    def refused() -> bool:
        with StateReader(link.destination.client_properties, "destination", link.name, follow=("reports",)) as state:
            state.catch_up(30)
            for reports in state.reports.values():
                for one in (row for report in reports for row in report.partitions):
                    found[one.reason or ""] = one.detail
        return "transform_refused" in found

    link.until(refused, "the partitions say that their expression is refused")
    assert "Rand" in found["transform_refused"]
    assert link.copied() == 0
