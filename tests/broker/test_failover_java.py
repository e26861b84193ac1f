"""Kafka's own consumers, of both protocols, keep count of every record across failovers: none twice, none missed, and
where the source is lost, exactly what the report says."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.control.failover import failover as failovers
from strait.control.failover.turn import Settings
from strait.embedded.kafka import Cluster
from strait.state.failover_records import FailoverStep
from support.fixtures.waiting import eventually
from support.kafka.groups import committed
from support.kafka.jvm import kafka_jvm
from support.kafka.records import read_all
from support.links.clients import Clients, MovingGroup, java_groups
from support.links.mesh import Mesh
from support.links.synchronized import synchronized

pytestmark = pytest.mark.broker

MakeMesh = Callable[..., Mesh]
THERE, BACK = ("a", "b"), ("b", "a")
SETTINGS = Settings(by="a test", quiet_seconds=1.0, timeout_seconds=60.0, include_moved=True)
RECORDS = 200


@pytest.fixture(scope="module")
def clusters(own_clusters: Any) -> Any:
    """A link whose plans cannot be read may write to any topic of its cluster, and other tests leave such links."""
    return own_clusters


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    with kafka_jvm() as found:
        yield found


def test_there_and_back_each_record_is_processed_once(make_mesh: MakeMesh, topic_name: str, jvm: Any) -> None:
    """Everybody is at work until the failover asks for their end; consumers leave before they have read all."""
    groups = {"consumer_groups": {"include": [f"{topic_name}.*"], "interval_seconds": 1}}
    mesh = make_mesh(links=[THERE, BACK], settings=groups)
    clients = Clients(topic_name, mesh.partitions, java_groups(jvm, topic_name), seed=7)
    for link in (THERE, BACK):
        mesh.start(link)
    told: list[str] = []

    def tell(step: FailoverStep) -> None:
        told.append(f"{step.verdict} {step.name}: {step.detail}")
        clients.asked(step.verdict, step.name)

    with synchronized(mesh):
        for link in (THERE, BACK):
            written = len(clients.written)
            with clients.on(mesh.clusters[link[0]]):
                mesh.until_ready(link)
                eventually(lambda written=written: len(clients.written) > written + 200, what="the writer is at work")
                record = failovers.run(mesh.handle(link), "planned", SETTINGS, tell)
            assert (record.outcome, record.rpo_records, record.groups, record.groups_exact) == ("done", 0, 2, 2), told
            mesh.restart(link)
    assert [sum(line.startswith(f"waiting {who}") for line in told) for who in ("producers", "consumers")] == [2, 2]
    clients.read_the_rest(mesh.clusters["a"])
    clients.assert_each_once()


def test_of_a_lost_source_exactly_the_reported_records_are_missed(
    clusters: Any, topic_name: str, tmp_path: Path, jvm: Any
) -> None:
    """And they come, each once, when it is back. Groups behind the copy read none twice; those ahead of it read again
    what was copied after they were last seen, and what comes later."""
    source = Cluster(tmp_path / "source")
    source.start()
    link = Mesh(
        clusters={"a": source, "b": clusters.destination},
        links=[THERE],
        topic=topic_name,
        folder=tmp_path,
        rule={},
        topics={"budget": {"bytes_per_second": 20_000}},
        settings={"consumer_groups": {"include": [f"{topic_name}.*"], "interval_seconds": 1}},
    )
    behind, ahead = java_groups(jvm, topic_name, "behind"), java_groups(jvm, topic_name, "ahead")
    try:
        link.make_topics()
        link.start(THERE)
        link.until_ready(THERE)
        with synchronized(link):
            producer = Producer(source.client_properties | {"batch.size": 4_000, "linger.ms": 0})
            for number in range(RECORDS):
                producer.produce(topic_name, b"v" * 4_000, b"%d" % number, number % link.partitions)
                producer.flush(30)
            for group, records in [*((one, 12) for one in behind), *((one, RECORDS) for one in ahead)]:
                process(group, source, records)
            eventually(
                lambda: all(committed_on_both(link, one.name) for one in behind), what="they are in sync on both sides"
            )
            source.kill(1)
            source.stop()
            record = failovers.run(link.handle(THERE), "unplanned", SETTINGS, lambda _: None)
        assert (record.outcome, record.groups) == ("done", 4)
        logs = [[item.key or b"" for item in log] for log in read_all(clusters.destination, topic_name, 2)]
        copied = Counter(key for log in logs for key in log)
        assert 12 < copied.total() < RECORDS
        assert {(item.partition, item.from_offset, item.to_offset) for item in record.missing} == {
            (number, len(log), RECORDS // 2) for number, log in enumerate(logs) if len(log) < RECORDS // 2
        }
        assert record.rpo_records == RECORDS - copied.total()
        again = {one.name: left(link, one.name, logs) for one in ahead}
        assert all(found.total() < copied.total() for found in again.values())
        for group in behind:
            process(group, clusters.destination, copied.total())
            assert Counter(group.processed) == copied
        source.start()
        link.restart(THERE)
        every = Counter(b"%d" % number for number in range(RECORDS))
        late = every - copied
        for group in behind:
            process(group, clusters.destination, RECORDS)
            assert Counter(group.processed) == every
        for group in ahead:
            process(group, clusters.destination, RECORDS + again[group.name].total() + late.total())
            assert Counter(group.processed) == every + again[group.name] + late
    finally:
        link.stop()
        source.stop()


def process(group: MovingGroup, cluster: Cluster, records: int) -> None:
    """At least until it has so many in all, and it leaves."""
    reader = group.join(cluster)
    reader.read(records - len(group.processed))
    reader.leave()
    group.processed += reader.keys


def committed_on_both(link: Mesh, group: str) -> bool:
    """The same offsets."""
    here, there = (committed(link.clusters[name], group, link.topic) for name in THERE)
    return here == there


def left(link: Mesh, group: str, logs: list[list[bytes]]) -> Counter[bytes]:
    """What it is still to read on the destination."""
    offsets = committed(link.clusters["b"], group, link.topic)
    return Counter(key for number, log in enumerate(logs) for key in log[offsets.get(number, 0) :])
