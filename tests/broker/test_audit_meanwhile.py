"""Logs that change while they are audited, by retention and by compaction; and a map that does not know all offsets."""

import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.audit.chunks import Chunk
from strait.audit.task import Auditor
from strait.audit.task_result import ChunkResult
from strait.config.cluster import Cluster as Place
from strait.embedded.kafka import Cluster
from strait.state.publisher import ControlPublisher
from strait.state.reader import StateReader
from strait.state.schema import TopicPolicy
from support.fixtures.waiting import eventually
from support.kafka.records import read_all
from support.kafka.rot import rot_in
from support.kafka.topics import alter, delete_before
from support.links.auditing import Audited, audit_link, planned
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
RECORDS, KEYS = 4000, 60


@pytest.fixture(scope="module")
def eager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Cluster]]:
    """A pair of clusters that compact at once."""
    properties = {"log.cleaner.backoff.ms": "50"}
    folders = (tmp_path_factory.mktemp(name) for name in ("eager-source", "eager-destination"))
    source, destination = (Cluster(folder, properties=properties) for folder in folders)
    with source, destination:
        yield source, destination


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[int, Callable[[], None]]], None]:
    """Have something happen before the audit's chunk of a number."""

    def install(events: Mapping[int, Callable[[], None]]) -> None:
        plain, number = Auditor.compare, [0]

        def compare(auditor: Auditor, chunk: Chunk) -> ChunkResult:
            events.get(number[0], lambda: None)()
            number[0] += 1
            return plain(auditor, chunk)

        monkeypatch.setattr(Auditor, "compare", compare)

    return install


def copied(link: EngineLink, topic: str, configs: Mapping[str, str] | None = None) -> Callable[[], Audited]:
    """Have the link copy, and end it. Return its planned audit, of some eight chunks."""
    link.make_topics(source_configs=dict(configs or {}), destination_configs=dict(configs or {}))
    write(link.source, topic, RECORDS)
    link.publish()
    slot = link.start_slot()
    link.until_copied()
    link.publish(stopped=True)
    slot.wait(60)
    return planned(link)


def write(cluster: Cluster, topic: str, records: int) -> None:
    producer = Producer(cluster.client_properties | {"batch.num.messages": 200, "linger.ms": 50})
    chance = random.Random(records)
    for number in range(records):
        producer.produce(topic, chance.randbytes(300), b"%d" % (number % KEYS), 0)
        producer.poll(0)
    assert producer.flush(60) == 0


def test_what_retention_deletes_during_an_audit_is_deleted_and_nothing_is_missing(
    make_link: MakeLink, topic_name: str, between: Any
) -> None:
    link = make_link(topics={topic_name: 1})
    audit = copied(link, topic_name)
    between(
        {
            2: lambda: delete_before(link.source, topic_name, {0: 1700}),
            4: lambda: delete_before(link.destination, topic_name, {0: 2900}),
        }
    )
    found = audit()
    assert len(found.results) > 5
    assert found.unexplained == {}, found.differences[:5]
    assert found.body["verdict"] == "incomplete"
    assert {one["kind"] for one in found.differences} == {"deleted"}
    deleted = sum(one["records"] for one in found.differences)
    assert 0 < deleted <= 2900
    assert found.total("by_batch") + found.total("by_record") + deleted == RECORDS


def test_what_compaction_removes_during_an_audit_is_explained(
    make_link: MakeLink, topic_name: str, between: Any, eager: tuple[Cluster, Cluster]
) -> None:
    """First on the source, then on the destination."""
    source, destination = eager
    link = make_link(
        topics={topic_name: 1}, source=source, destination=destination, policy=TopicPolicy(source_compacted=True)
    )
    late = {"cleanup.policy": "compact", "min.compaction.lag.ms": "86400000", "segment.bytes": str(1 << 20)}
    audit = copied(link, topic_name, late)

    def compact(cluster: Cluster) -> None:
        now = {"min.compaction.lag.ms": "0", "max.compaction.lag.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
        alter(cluster, topic_name, **{name.replace(".", "_"): value for name, value in now.items()}, segment_ms="300")

        def is_compacted() -> bool:
            write(cluster, topic_name, 10)  # a segment rolls only when something is written
            kept = [one for one in read_all(cluster, topic_name, 1)[0] if one.offset < RECORDS]
            return len(kept) < RECORDS / 2

        eventually(is_compacted, what="the topic is compacted")

    between({2: lambda: compact(source), 4: lambda: compact(destination)})
    found = audit()
    assert len(found.results) > 5
    assert found.unexplained == {}, found.differences[:5]
    assert {one["explained"] for one in found.differences} == {"compaction"}
    assert found.body["verdict"] == "explained"


def test_records_that_the_map_does_not_know_are_counted_and_faults_among_the_others_named(
    make_link: MakeLink, topic_name: str, tmp_path: Path
) -> None:
    link = make_link(topics={topic_name: 1})
    copied(link, topic_name)
    there = Place(link.destination.client_properties, "b")
    (whole,) = link.runs(topic_name, 0)
    first, second = 1000, 1800
    rebuilt = [
        whole.model_copy(update={"sequence_end": first}),
        whole.model_copy(
            update={
                "sequence_base": second,
                "source_base": whole.source_base + second - whole.sequence_base,
                "destination_base": whole.destination_base + second - whole.sequence_base,
                "after_unknown": True,
            }
        ),
    ]
    with (
        StateReader(*there, link.name) as state,
        ControlPublisher(*there, link.name).exclusive(state) as publication,
    ):
        publication.publish((), rebuilt)
    found = audit_link(link)
    assert (found.body["verdict"], found.unexplained) == ("incomplete", {})
    assert found.body["partitions"][0]["unknown"] == second - first
    assert found.total("records") == RECORDS - (second - first)
    rot = rot_in(link.destination.directory, topic_name, 0, random.Random(5), lambda batch: batch.size - 20)
    inside = first <= rot.batch.base_offset and rot.batch.base_offset + rot.batch.records <= second
    with rot:
        damaged = [one for one in audit_link(link).differences if one["kind"] == "damaged"]
    assert bool(damaged) != inside
