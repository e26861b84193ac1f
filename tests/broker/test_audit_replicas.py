"""Of a damaged batch the replicas are named that hold it, each by its broker and directory."""

import random
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.model import TopicPartition
from strait.net.brokers import Replica, replicas
from support.fixtures.waiting import eventually
from support.kafka.records import read_all
from support.kafka.rot import rot_in
from support.kafka.segments import segments
from support.kafka.topics import create
from support.links.auditing import Audited, audit_copies

pytestmark = pytest.mark.broker

RECORDS = 500


def copies(source: Cluster, destination: Cluster, topic: str, replication: int) -> list[Replica]:
    """Write equal records to both; return the destination's replicas once all of them have them."""
    create(source, topic)
    Admin(destination.client_properties, "b").create([NewTopic(topic, 1, replication)])
    for cluster in (source, destination):
        producer = Producer(cluster.client_properties | {"batch.num.messages": 50, "linger.ms": 20})
        for number in range(RECORDS):
            producer.produce(topic, b"value %d" % number, timestamp=1_700_000_000_000 + number)
        assert producer.flush(60) == 0
    eventually(lambda: len(read_all(destination, topic, 1)[0]) == RECORDS, what="all is written")
    paths = segments(destination.directory, topic, 0)
    assert len(paths) == replication
    eventually(lambda: len({path.stat().st_size for path in paths}) == 1, what="the followers have it")
    return replicas(destination.client_properties, "b", TopicPartition(topic, 0))


def test_a_damaged_replica_is_named_by_its_broker_and_a_follower_only_if_the_leader_is_damaged(
    clusters: Any, three_brokers: Cluster, topic_name: str
) -> None:
    leader, *followers = copies(clusters.source, three_brokers, topic_name, 3)
    names = {topic_name: topic_name}
    everywhere = rot_in(three_brokers.directory, topic_name, 0, random.Random(3), lambda batch: batch.size - 20)
    paths = {one.broker: path for one in (leader, *followers) for path in everywhere.files if _is_of(path, one.broker)}
    assert len(paths) == 3

    def details(*brokers: int) -> str:
        with everywhere._replace(files=[paths[one] for one in brokers]):
            found = audit_copies(clusters.source, three_brokers, names, "order").differences
        (damaged,) = [one for one in found if one["kind"] == "damaged"]
        assert damaged["copy"] == everywhere.batch.base_offset
        return str(damaged["detail"])

    intact = ", ".join(str(one.broker) for one in followers)
    told = details(leader.broker)
    assert told == (
        f"destination; on broker {leader.broker} (leader, {paths[leader.broker].parent}); intact on broker {intact}"
    )
    assert "so on all replicas" in details(*paths)
    with everywhere._replace(files=[paths[followers[0].broker]]):
        found = audit_copies(clusters.source, three_brokers, names, "order")
    assert found.body["verdict"] == "equal", f"only the leader is read: {found.body['not_covered']}"


@pytest.mark.parametrize("relation", ["order", "offset"])
def test_a_follower_is_read_if_it_is_asked_for(
    clusters: Any, three_brokers: Cluster, topic_name: str, relation: str
) -> None:
    leader, *followers = copies(clusters.source, three_brokers, topic_name, 3)

    def audit() -> Audited:
        return audit_copies(clusters.source, three_brokers, {topic_name: topic_name}, relation, replicas=True)

    sound = audit()
    assert sound.body["verdict"] == "equal"
    assert not any("replicas" in text for text in sound.body["not_covered"])
    (partition,) = sound.body["partitions"]
    assert partition["replica_bytes"] == 2 * partition["copy_bytes"], "the source has no follower"
    everywhere = rot_in(three_brokers.directory, topic_name, 0, random.Random(3), lambda batch: batch.size - 20)
    bad = followers[1].broker
    (path,) = (path for path in everywhere.files if _is_of(path, bad))
    with everywhere._replace(files=[path]):
        found = audit()
    assert found.body["verdict"] == "different"
    (damaged,) = found.differences
    assert (damaged["kind"], damaged["copy"]) == ("damaged", everywhere.batch.base_offset)
    assert damaged["detail"] == (
        f"destination; on broker {bad} ({path.parent}); intact on broker {leader.broker} (leader)"
    )
    with everywhere._replace(files=[path for path in everywhere.files if not _is_of(path, followers[0].broker)]):
        (damaged,) = (one for one in audit().differences if one["kind"] == "damaged")
    assert f"on broker {leader.broker} (leader" in damaged["detail"], "named once, with the leader's"
    assert f"{bad} (" in damaged["detail"]
    assert audit().body["verdict"] == "equal"


def test_a_follower_that_cannot_be_read_is_named_and_nothing_is_said_of_it(
    clusters: Any, three_brokers: Cluster, topic_name: str
) -> None:
    _, *followers = copies(clusters.source, three_brokers, topic_name, 3)
    away = followers[0].broker
    three_brokers.kill(away)
    place = TopicPartition(topic_name, 0)
    try:
        eventually(
            lambda: (
                {one.broker: one for one in replicas(three_brokers.client_properties, "b", place)}[away].address is None
            ),
            what="the cluster knows that it has ended",
        )
        found = audit_copies(clusters.source, three_brokers, {topic_name: topic_name}, "order", replicas=True)
    finally:
        three_brokers.start_broker(away)
    assert found.body["verdict"] == "incomplete"
    assert any(f"broker {away}" in text for text in found.body["not_covered"]), found.body["not_covered"]


def _is_of(path: Path, broker: int) -> bool:
    return f"broker-{broker}" in path.parts


def test_of_a_topic_with_one_replica_it_is_said_that_there_is_no_other(clusters: Any, topic_name: str) -> None:
    copies(clusters.source, clusters.destination, topic_name, 1)
    with rot_in(clusters.source.directory, topic_name, 0, random.Random(4), lambda batch: batch.size - 20):
        found = audit_copies(clusters.source, clusters.destination, {topic_name: topic_name}, "offset").differences
    (damaged,) = [one for one in found if one["kind"] == "damaged"]
    assert damaged["source"] >= 0
    assert damaged["detail"].startswith("source; on broker 1 (leader, ")
    assert damaged["detail"].endswith("), its only replica")
