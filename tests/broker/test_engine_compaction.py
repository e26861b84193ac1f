"""Sources that are compacted, before and while they are copied, into destinations that are compacted too."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.state.schema import TopicPolicy
from support.fixtures.background import background
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import Record, read_all
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
EAGER = {"log.cleaner.backoff.ms": "50", "log.cleaner.threads": "2"}
QUICK = {
    "cleanup.policy": "compact",
    "segment.bytes": str(1 << 20),  # the smallest that brokers take
    "segment.ms": "300",
    "min.cleanable.dirty.ratio": "0.001",
    "max.compaction.lag.ms": "100",
    "delete.retention.ms": "100",
}
SOURCE = QUICK | {"delete.retention.ms": "86400000"}
"""Whoever reads a compacted topic sees each deletion only if its lag is less than this: a source that forgets deletions
sooner than slots restart leaves keys in the copy that it has no longer itself."""
COMPACTED = TopicPolicy(source_compacted=True)
SHORT_CHECKPOINTS = {"strait.engine.slot:CHECKPOINT_SECONDS": 0.5}
KEYS = 60


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Cluster]]:
    """A pair of clusters that compact all the time."""
    source = Cluster(tmp_path_factory.mktemp("eager-source"), properties=EAGER)
    destination = Cluster(tmp_path_factory.mktemp("eager-destination"), properties=EAGER)
    with source, destination:
        yield source, destination


@pytest.fixture
def link(make_link: MakeLink, topic_name: str, eager: tuple[Cluster, Cluster]) -> EngineLink:
    source, destination = eager
    return make_link(topics={topic_name: 2}, source=source, destination=destination, policy=COMPACTED)


class Writer:
    """Values and tombstones of a few keys in batches of several records, so that compaction leaves holes."""

    def __init__(self, link: EngineLink, topic: str, seed: int) -> None:
        self._topic = topic
        self._rng = random.Random(seed)
        self._producer = Producer(link.source.client_properties | {"linger.ms": 10, "compression.type": "lz4"})
        self._partitions = link.topics[topic]
        self.written = 0

    def write(self, records: int) -> None:
        for _ in range(records):
            key = self._rng.randrange(KEYS)
            value = None if self._rng.random() < 0.1 else b"%d" % self.written
            partition = key % self._partitions
            self._producer.produce(self._topic, value, b"%d" % key, partition, headers=[("n", b"%d" % self.written)])
            self.written += 1
        assert self._producer.flush(60) == 0


@contextmanager
def writing(link: EngineLink, topic: str, seed: int, seconds: float) -> Iterator[threading.Thread]:
    """Write in the background for about so long."""
    writer = Writer(link, topic, seed)

    def write(stop: threading.Event) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and not stop.is_set():
            writer.write(40)

    with background(write) as thread:
        yield thread


def until_compacted(link: EngineLink, topic: str, writer: Writer) -> None:
    """Until most of what was written is gone from every partition. Segments roll only when something is written."""

    def compacted() -> bool:
        writer.write(10)
        kept = read_all(link.source, topic, link.topics[topic])
        return all(2 * len(one) < end for one, end in zip(kept, ends(link.source, topic, len(kept)), strict=True))

    eventually(compacted, what="the source is compacted")


def last_values(records: list[Record]) -> dict[bytes | None, tuple[object, ...]]:
    """What compaction must keep; a key whose last value is a tombstone may be there or not."""
    values = {record.key: record[2:] for record in records}
    return {key: value for key, value in values.items() if value[0] is not None}


def assert_last_values_equal(link: EngineLink, topic: str) -> None:
    partitions = link.topics[topic]
    for one, other in zip(
        read_all(link.source, topic, partitions), read_all(link.destination, topic, partitions), strict=True
    ):
        assert last_values(other) == last_values(one)


def test_a_compacted_topic_arrives_record_by_record(link: EngineLink, topic_name: str) -> None:
    """What is left of it, tombstones too, into a topic that keeps all."""
    link.make_topics(source_configs=SOURCE)
    writer = Writer(link, topic_name, 1)
    writer.write(3_000)
    until_compacted(link, topic_name, writer)
    link.publish()
    before = read_all(link.source, topic_name, 2)
    link.start_slot()
    link.until_seen()
    after = read_all(link.source, topic_name, 2)
    copied = read_all(link.destination, topic_name, 2)
    for one, other, copy in zip(before, after, copied, strict=True):
        arrived = [record[1:] for record in copy]
        assert [record[1:] for record in one if record in other] == [
            record for record in arrived if record in {kept[1:] for kept in other}
        ]
        assert set(arrived) <= {record[1:] for record in one}
        assert any(record.value is None for record in copy)
    assert_last_values_equal(link, topic_name)


@pytest.mark.parametrize("seed", [31])
def test_compaction_on_both_sides_while_copies_race_and_are_killed(
    link: EngineLink, topic_name: str, seed: int
) -> None:
    """No record may be skipped for good: each key ends with the source's last value."""
    rng = random.Random(seed)
    link.make_topics(source_configs=SOURCE, destination_configs=QUICK)
    link.publish()
    racing = [link.start_slot(changed=SHORT_CHECKPOINTS) for _ in range(2)]
    kills = 0
    with writing(link, topic_name, seed, seconds=20) as thread:
        while thread.is_alive() or kills < 10:
            time.sleep(rng.uniform(0.5, 2.5))  # the moment of the kill is the random input of this test
            victim = rng.randrange(2)
            link.kill(racing[victim])
            racing[victim] = link.start_slot(changed=SHORT_CHECKPOINTS)
            kills += 1
    link.until_seen()
    assert_last_values_equal(link, topic_name)


def test_compaction_while_one_copy_runs_repeats_nothing(link: EngineLink, topic_name: str) -> None:
    """Without doubt about what was copied each record comes at most once, and in order."""
    link.make_topics(source_configs=SOURCE)
    link.publish()
    link.start_slot()
    with writing(link, topic_name, seed=3, seconds=8):
        pass
    link.until_seen()
    for copy in read_all(link.destination, topic_name, 2):
        numbers = [int(record.headers[0][1] or b"") for record in copy]
        assert numbers == sorted(set(numbers))
    assert_last_values_equal(link, topic_name)
