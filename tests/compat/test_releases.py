"""Links between brokers of different releases: the copy is exact, and stays so through kills and forgotten
producers."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka.protocol.admin import DescribeProducersRequest, DescribeProducersResponse

from strait.config.links import parse
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.model import TopicPartition
from strait.net.addresses import parse_addresses
from strait.net.consumer_groups import Committed, ConsumerGroups
from strait.net.handshake import Connection, dial
from strait.net.security import Security
from strait.reasons import Reason
from strait.wire import fetch, produce
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_equal, read_all
from support.kafka.releases import MATRIX
from support.kafka.topics import create, delete, grow
from support.kafka.topics import produce as produce_numbers
from support.kafka.transactions import Transactions, assert_map_is_exact
from support.links.copying import copying
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# A broker that serves no DescribeProducers: the slot looks for a request that none serves.
WITHOUT = {"strait.engine.recovery.producer_state:_DESCRIBE_PRODUCERS_API_KEY": 9999}
OFTEN_LOOKED = {"strait.net.cluster_client:METADATA_REFRESH_SECONDS": 2.0}
WAYS: dict[str, dict[str, float]] = {"without-describe-producers": WITHOUT} | ({"with": {}} if MATRIX else {})
MakeLink = Callable[..., EngineLink]


def write(link: EngineLink, topic: str, records: int, **settings: Any) -> None:
    """Records of every awkward shape, from Kafka's ordinary client."""
    rng = random.Random(topic)
    producer = Producer(link.source.client_properties | {"linger.ms": 20} | settings)
    for number in range(records):
        producer.produce(
            topic,
            value=rng.choice([None, b"", rng.randbytes(rng.randrange(2000)), b"x" * rng.randrange(5000)]),
            key=rng.choice([None, b"", f"key {number}".encode()]),
            headers=rng.choice([None, [("a", b"1"), ("a", b"2"), ("ü", None)], [("empty", b"")]]),
            timestamp=rng.choice([0, 1_600_000_000_000 + number]),
            partition=number % link.topics[topic],
        )
        producer.poll(0)
    assert producer.flush(60) == 0


def connect(cluster: Cluster) -> Connection:
    (address,) = parse_addresses("it", cluster.bootstrap)
    return dial("it", address, Security("it", cluster.client_properties), timeout_seconds=30.0)


def recreate(cluster: Cluster, topic: str) -> None:
    delete(cluster, topic)
    eventually(
        lambda: topic in Admin(cluster.client_properties, "it").create([NewTopic(topic, 1, 1)]),
        what="it is there again",
    )


def test_each_release_takes_the_path_it_stands_for(pair: Any) -> None:
    """Else the other tests prove nothing of producing and fetching by name."""
    for cluster, release in ((pair.source, pair.source_release), (pair.destination, pair.destination_release)):
        connection = connect(cluster)
        try:
            assert (connection.version(fetch.API_KEY, *fetch.VERSIONS) >= 13) == release.fetches_by_id
            assert (connection.version(produce.API_KEY, *produce.VERSIONS) >= 13) == release.produces_by_id
        finally:
            connection.close()


def test_every_codec_and_every_shape_of_record_arrives_equal(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={f"{topic_name}.{codec}": 2 for codec in CODECS})
    link.make_topics()
    for codec in CODECS:
        write(link, f"{topic_name}.{codec}", 500, **{"compression.type": codec})
    link.publish()
    link.start_slot()
    link.until_copied()
    for codec in CODECS:  # and what comes while it runs, in tiny batches
        write(link, f"{topic_name}.{codec}", 100, **{"compression.type": codec, "batch.num.messages": 1})
    link.until_copied()
    link.assert_equal()


def test_consumer_groups_are_seen_and_their_offsets_are_written(pair: Any, topic_name: str) -> None:
    """By requests that are asked for many groups at once where the release takes that."""
    for cluster in (pair.source, pair.destination):
        Admin(cluster.client_properties, "it").create([NewTopic(topic_name, 2, 1)])
        wanted = {
            f"{topic_name} {number}": {
                TopicPartition(topic_name, partition): Committed(number, f"ü {partition}") for partition in range(2)
            }
            for number in range(3)
        }
        with ConsumerGroups(cluster.client_properties, "it") as groups:
            done = groups.commit(wanted, retention_ms=86_400_000)
            assert {code for codes in done.values() for code in codes.values()} == {0}
            assert groups.committed([*wanted, "nobody"]) == wanted | {"nobody": {}}
            assert {name: groups.listed()[name] for name in wanted} == dict.fromkeys(wanted, ("classic", "Empty", ""))


def test_what_was_committed_arrives_and_what_was_aborted_does_not(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 2})
    link.make_topics()
    one, two = (Transactions(link.source, f"{topic_name}-{n}", topic_name, 2) for n in range(2))
    one.begin()
    one.write(10)
    one.abort()
    link.publish()
    slot = link.start_slot()
    for commit_one, commit_two in [(True, True), (True, False), (False, True), (False, False)] * 2:
        one.begin()
        one.write(6)
        two.begin()
        two.write(4)
        two.end(commit_two)
        write(link, topic_name, 4, **{"enable.idempotence": True})
        one.end(commit_one)
    link.until_seen()
    link.assert_same_records()
    link.kill(slot)
    link.start_slot()
    write(link, topic_name, 10)
    link.until_seen()
    link.assert_same_records()
    assert_map_is_exact(link)


@pytest.mark.parametrize("unlike", WAYS.values(), ids=WAYS)
def test_a_killed_slot_is_recovered_and_copies_each_record_once(
    make_link: MakeLink, topic_name: str, unlike: dict[str, float]
) -> None:
    """Each kill finds requests under way; another copy of the slot is there at the same time for a while."""
    link = make_link(topics={topic_name: 2})
    link.make_topics()
    link.publish()
    write(link, topic_name, 4000)
    slot = link.start_slot(changed=unlike)
    for kill in range(4):
        rival = link.start_slot(changed=unlike) if kill % 2 else None
        write(link, topic_name, 1000, **{"linger.ms": 0, "batch.num.messages": 20})
        eventually(lambda at=kill: link.copied() > 500 * (at + 1), what=lambda: f"some are copied {link.log()}")
        link.kill(slot)
        slot = rival or link.start_slot(changed=unlike)
    link.until_copied()
    link.assert_equal()
    assert_map_is_exact(link)


@pytest.mark.parametrize("unlike", WAYS.values(), ids=WAYS)
def test_a_producer_that_the_broker_forgot_goes_on_where_it_was(
    make_link: MakeLink, topic_name: str, unlike: dict[str, float]
) -> None:
    """The map's last checkpoint names only the first half. The tail of the log must tell the rest."""
    link = make_link()
    link.make_topics()
    link.publish()
    write(link, topic_name, 100)
    slot = link.start_slot(changed=unlike)
    link.until_copied()
    link.publish(stopped=True)
    slot.wait(60)
    link.publish()
    write(link, topic_name, 100)
    slot = link.start_slot(changed=unlike | {"strait.engine.slot:CHECKPOINT_SECONDS": 3600.0})
    link.until_copied()
    link.kill(slot)
    assert max(run.sequence_end for run in link.runs(topic_name, 0)) == 100
    time.sleep(1.5)  # what the broker needs to forget
    link.destination.stop_broker(1)
    link.destination.start_broker(1)
    eventually(lambda: known_producers(link.destination, topic_name) == 0, what="the broker forgets every producer")
    write(link, topic_name, 100)
    link.start_slot(changed=unlike)
    link.until_copied()
    link.assert_equal()


def known_producers(cluster: Cluster, topic: str) -> int:
    topics = [DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[0])]
    connection = connect(cluster)
    try:
        reply = connection.ask(DescribeProducersRequest(version=0, topics=topics), DescribeProducersResponse)
        return len(reply.topics[0].partitions[0].active_producers)
    finally:
        connection.close()


def test_a_source_topic_created_anew_is_not_mistaken_for_the_old_one(
    make_link: MakeLink, topic_name: str, pair: Any
) -> None:
    """Brokers that are asked by the topic's name serve the new one until metadata tells of it, and nothing after."""
    link = make_link()
    link.make_topics()
    write(link, topic_name, 100)
    link.publish()
    link.start_slot()
    link.until_copied()
    recreate(link.source, topic_name)
    write(link, topic_name, 200)
    link.until_waiting(topic_name, 0, Reason.SOURCE_RECREATED)
    held = ends(link.destination, topic_name, 1)
    assert held == [100] or not pair.source_release.fetches_by_id
    write(link, topic_name, 100)
    time.sleep(2)
    assert ends(link.destination, topic_name, 1) == held


def test_a_destination_created_anew_stops_the_partition(make_link: MakeLink, topic_name: str, pair: Any) -> None:
    """Brokers that take batches by the topic's name append what is under way to the new topic, and nothing after."""
    link = make_link()
    link.make_topics()
    write(link, topic_name, 100)
    link.publish()
    link.start_slot(changed=OFTEN_LOOKED)
    link.until_copied()
    recreate(link.destination, topic_name)
    write(link, topic_name, 100)
    link.until_waiting(topic_name, 0, Reason.DESTINATION_RECREATED)
    held = ends(link.destination, topic_name, 1)
    assert held == [0] or not pair.destination_release.produces_by_id
    write(link, topic_name, 100)
    time.sleep(2)
    assert ends(link.destination, topic_name, 1) == held


def test_the_control_plane_creates_fills_and_grows_a_copy(pair: Any, topic_name: str, tmp_path: Path) -> None:
    name, topic = "l" + topic_name[-8:], f"t{topic_name[-8:]}"
    create(pair.source, topic, 2, retention_ms="900000")
    produce_numbers(pair.source, topic, 50)
    sides = {"a": pair.source.client_properties, "b": pair.destination.client_properties}
    settings = {"source": "a", "destination": "b", "topics": {"include": [topic]}, "configs": {"sync": True}}
    with Control(parse({"clusters": sides, "links": {name: settings}}, where="links file"), name) as control:
        assert control.apply().created == (topic,)
        grow(pair.source, topic, 3)
        produce_numbers(pair.source, topic, 50, 2)
        with copying(control, tmp_path):
            eventually(lambda: ends(pair.destination, topic, 3) == [50, 0, 50], what="every record of all partitions")
        assert control.apply().done == ()
    assert_equal(read_all(pair.source, topic, 3), read_all(pair.destination, topic, 3))
