"""Copies that end, on real brokers: exactly there, once, for good, and further when their end is later."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from strait.audit.observing import plan_link
from strait.audit.plan import AuditRequest
from strait.config.links import LinksFile, parse
from strait.consumer_groups.offsets import Offsets
from strait.control.failover import failover as failovers
from strait.control.failover.turn import Settings
from strait.control.link_status import link_groups
from strait.control.plane import Control
from strait.control.reaching import Reaching
from strait.model import TopicPartition
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.up_to import UpTo
from strait.reasons import Reason
from strait.state.link_handle import ConfiguredLink
from strait.waiting import unix_ms
from support.fixtures.waiting import eventually
from support.kafka.records import read_all
from support.kafka.topics import create
from support.links.auditing import ends_of
from support.links.copying import copying

pytestmark = pytest.mark.broker

PARTITIONS = 2


class Copy:
    """A link whose rule may have an end, and a topic with numbered records."""

    def __init__(self, clusters: Any, topic: str, folder: Path) -> None:
        self.clusters, self.topic, self.folder = clusters, topic, folder
        self.name, self.count = f"u{topic[-8:]}", 0
        self.base_ms = unix_ms() - 200_000
        create(clusters.source, topic, PARTITIONS)

    def file(self, until: Any) -> LinksFile:
        rule = {"match": self.topic} | ({} if until is None else {"until": until})
        ends = {"a": self.clusters.source, "b": self.clusters.destination}
        link = {"source": "a", "destination": "b", "topics": {"include": [self.topic], "rules": [rule]}}
        named = {name: dict(cluster.client_properties) for name, cluster in ends.items()}
        return parse({"clusters": named, "links": {self.name: link}}, where="links file")

    def produce(self, records: int) -> None:
        """Many of them in one batch; 0.1 s apart."""
        producer = Producer(self.clusters.source.client_properties | {"linger.ms": 200, "compression.type": "zstd"})
        for _ in range(records):
            at_ms = self.base_ms + 100 * self.count
            producer.produce(self.topic, b"%d" % self.count, partition=self.count % PARTITIONS, timestamp=at_ms)
            self.count += 1
        assert producer.flush(60) == 0

    @contextmanager
    def running(self, until: Any) -> Iterator[Control]:
        file = self.file(until)
        with Control(file, self.name) as control, copying(control, self.folder):
            yield control

    def rows(self) -> list[PartitionStatus]:
        return list(link_groups(ConfiguredLink.of(self.file(None), self.name)).rows)

    def finished(self) -> bool:
        rows = self.rows()
        return len(rows) == PARTITIONS and all(row.reason == Reason.FINISHED for row in rows)

    def until_finished(self, control: Control) -> None:
        eventually(self.finished, what="both partitions are finished", within_seconds=120)
        control.apply()

    def copied(self) -> list[list[int]]:
        found = read_all(self.clusters.destination, self.topic, PARTITIONS)
        return [[int(record.value) for record in records] for records in found]

    def before(self, end: int) -> list[list[int]]:
        return [list(range(partition, end, PARTITIONS)) for partition in range(PARTITIONS)]


@pytest.fixture
def copy(clusters: Any, topic_name: str, tmp_path: Path) -> Copy:
    return Copy(clusters, topic_name, tmp_path)


@pytest.mark.core
def test_a_copy_ends_at_its_time_and_goes_on_when_the_time_is_later(copy: Copy) -> None:
    copy.produce(1_000)
    until = copy.base_ms + 30_050  # in the middle of a batch: record 301 is the first that is not copied
    with copy.running(until) as control:
        copy.until_finished(control)
        assert copy.copied() == copy.before(301)
        copy.produce(10)
        rows = copy.rows()
        assert [(row.state, row.slot, row.lag_records) for row in rows] == [("caught_up", None, 0)] * PARTITIONS
        assert not copy_behind(copy)
    with copy.running(until) as control:
        copy.until_finished(control)
    assert copy.copied() == copy.before(301)
    with copy.running("latest") as control:
        copy.produce(10)
        copy.until_finished(control)
        assert copy.copied() == copy.before(1_010)
    with copy.running(None):
        eventually(lambda: copy.copied() == copy.before(1_020), what="it is copied on", within_seconds=120)


def copy_behind(copy: Copy) -> str:
    with ExitStack() as stack:
        reaching = Reaching(ConfiguredLink.of(copy.file(None), copy.name), (), UpTo())
        stack.callback(reaching.close)
        return reaching.look()


def test_what_the_source_deletes_behind_a_finished_copy_is_no_loss(copy: Copy) -> None:
    copy.produce(100)
    with copy.running("latest") as control:
        copy.until_finished(control)
    copy.produce(100)
    admin = AdminClient(copy.clusters.source.client_properties)
    places = [KafkaPartition(copy.topic, partition, 80) for partition in range(PARTITIONS)]
    for future in admin.delete_records(places).values():
        future.result(60)
    with copy.running("latest") as control:
        control.apply()
        assert copy.finished() and copy.copied() == copy.before(100)
        with ConfiguredLink.of(copy.file("latest"), copy.name).state("losses") as state:
            state.catch_up(30)
            assert not state.losses


def test_offsets_are_exact_and_other_partitions_have_no_end(copy: Copy) -> None:
    copy.produce(400)
    with copy.running({0: 37}):
        eventually(
            lambda: copy.copied() == [list(range(0, 74, 2)), list(range(1, 400, 2))],
            what="both parts",
            within_seconds=120,
        )
        eventually(lambda: {row.reason for row in copy.rows()} == {"", Reason.FINISHED}, what="one is finished")
        copy.produce(2)
        eventually(lambda: len(copy.copied()[1]) == 201, what="the other goes on", within_seconds=60)
        assert len(copy.copied()[0]) == 37


def test_records_after_the_end_are_nobodys_business(copy: Copy) -> None:
    """Neither backlog, nor missing, nor waited for; a group that has consumed them has consumed the whole copy."""
    copy.produce(200)
    source, destination = copy.clusters.source, copy.clusters.destination
    until = copy.base_ms + 10_050  # record 101 is the first that is not copied
    with Control(copy.file(until), copy.name) as control:
        ahead = control.forecast(control.propose())
        assert ahead.backfill.records == 101
    with copy.running(until) as control:
        copy.until_finished(control)
        copy.produce(50)
        places = [TopicPartition(copy.topic, number) for number in range(PARTITIONS)]
        found = Offsets(ConfiguredLink.of(copy.file(until), copy.name)).to_destination(
            [(place, 120) for place in places]
        )
        assert [(one.to_offset, one.fit) for one in found] == [(51, "exact"), (50, "exact")]
        assert all("after the end of the copy" in one.detail for one in found)
        plan = plan_link(ends_of(source, destination), copy.name, AuditRequest(), "by-hand")
        assert [(one.problem, one.end, one.tail) for one in plan.partitions] == [("", 51, 0), ("", 50, 0)]
        settings = Settings(by="a test", reason="to see", quiet_seconds=0.1, timeout_seconds=30.0)
        looked = failovers.dry_run(ConfiguredLink.of(copy.file(until), copy.name), "planned", settings, lambda _: None)
        steps = {step.name: step for step in looked.steps}
        assert (steps["copying"].verdict, steps["producers"].verdict, steps["drain"].verdict) == ("done",) * 3, steps
        assert "2 only up to their `until`" in steps["copying"].detail
