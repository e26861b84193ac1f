"""What the engine copies, and what it waits for, on real brokers."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from strait.kafka.admin import Admin, NewTopic
from strait.reasons import Reason
from strait.state.topics import ensure_state_topics
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.links.engine_link import EngineLink, replicas

pytestmark = pytest.mark.broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MakeLink = Callable[..., EngineLink]


def produce(link: EngineLink, topic: str, records: int, **settings: Any) -> None:
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


def test_every_codec_and_every_shape_of_record_arrives_equal(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={f"{topic_name}.{codec}": 3 for codec in CODECS})
    link.make_topics()
    for codec in CODECS:
        produce(link, f"{topic_name}.{codec}", 1500, **{"compression.type": codec})
    link.publish()
    link.start_slot()
    link.until_copied()
    for codec in CODECS:  # and what comes while it runs
        produce(link, f"{topic_name}.{codec}", 300, **{"compression.type": codec, "batch.num.messages": 1})
    link.until_copied()
    link.assert_equal()


@pytest.mark.core
def test_a_topic_added_to_the_plan_starts_and_one_taken_out_stops(make_link: MakeLink, topic_name: str) -> None:
    first, second = f"{topic_name}.first", f"{topic_name}.second"
    link = make_link(topics={first: 2, second: 2})
    link.make_topics()
    link.publish([first])
    link.start_slot()
    produce(link, first, 100)
    eventually(lambda: sum(ends(link.destination, first, 2)) == 100, what="the first topic is copied")
    produce(link, second, 100)
    link.publish([second])
    eventually(lambda: sum(ends(link.destination, second, 2)) == 100, what="the second topic is copied")
    produce(link, first, 10)
    produce(link, second, 10)
    eventually(lambda: sum(ends(link.destination, second, 2)) == 110, what="the second topic goes on")
    assert sum(ends(link.destination, first, 2)) == 100
    link.publish()
    link.until_copied()
    link.assert_equal()


def test_what_the_source_deleted_before_it_was_copied_halts_the_partition(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    producer = Producer(link.source.client_properties | {"linger.ms": 200})
    for number in range(10):
        producer.produce(topic_name, str(number).encode())
    assert producer.flush(30) == 0
    admin = AdminClient(link.source.client_properties)
    for future in admin.delete_records([TopicPartition(topic_name, 0, 5)]).values():
        future.result()
    link.publish()
    link.start_slot()
    row = link.until_waiting(topic_name, 0, Reason.SOURCE_DATA_LOST)
    assert "0 to 4" in row.detail
    assert ends(link.destination, topic_name, 1) == [0]


def test_a_batch_too_large_waits_until_the_limit_is_raised(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 2})
    link.make_topics(destination_configs={"max.message.bytes": "10000"})
    producer = Producer(link.source.client_properties)
    producer.produce(topic_name, random.Random(1).randbytes(50_000), partition=0)
    producer.produce(topic_name, b"small", partition=1)
    assert producer.flush(30) == 0
    link.publish()
    link.start_slot()
    link.until_waiting(topic_name, 0, Reason.BATCH_TOO_LARGE)
    eventually(lambda: ends(link.destination, topic_name, 2) == [0, 1], what="the other partition is copied")
    set_config(link, topic_name, "max.message.bytes", "1000000")
    link.until_copied()
    link.assert_equal()


def test_a_strangers_record_halts_the_partition_and_is_named(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 2})
    link.make_topics()
    produce(link, topic_name, 100)
    link.publish()
    link.start_slot()
    link.until_copied()
    stranger = Producer(link.destination.client_properties)
    stranger.produce(topic_name, b"not of the link", partition=0)
    assert stranger.flush(30) == 0
    produce(link, topic_name, 100)
    row = link.until_waiting(topic_name, 0, Reason.FOREIGN_WRITER)
    assert "51" in row.detail
    eventually(lambda: ends(link.destination, topic_name, 2)[1] == 100, what="the other partition goes on")


def test_a_topic_created_anew_is_not_mistaken_for_the_old_one(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    produce(link, topic_name, 100)
    link.publish()
    link.start_slot()
    link.until_copied()
    recreate(link.source, topic_name)
    produce(link, topic_name, 200)
    link.until_waiting(topic_name, 0, Reason.SOURCE_RECREATED)
    assert ends(link.destination, topic_name, 1) == [100]


def test_nothing_is_written_into_a_destination_created_anew(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    produce(link, topic_name, 100)
    link.publish()
    link.start_slot()
    link.until_copied()
    recreate(link.destination, topic_name)
    produce(link, topic_name, 100)
    link.until_waiting(topic_name, 0, Reason.DESTINATION_RECREATED)
    assert ends(link.destination, topic_name, 1) == [0]


@pytest.mark.core
def test_a_topic_gone_from_the_destination_is_waited_for(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    produce(link, topic_name, 100)
    link.publish()
    link.start_slot()
    link.until_copied()
    delete(link.destination, topic_name)
    produce(link, topic_name, 100)
    link.until_waiting(topic_name, 0, Reason.DESTINATION_MISSING)


def test_a_partition_that_the_destination_lacks_has_a_reason_and_is_copied_once_it_is_there(
    make_link: MakeLink, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a topic without an id was made again with fewer partitions after it was planned."""
    link = make_link(topics={topic_name: 3})
    Admin(link.source.client_properties, "source").create([NewTopic(topic_name, 3, replicas(link.source))])
    admin = Admin(link.destination.client_properties, "destination")
    admin.create([NewTopic(topic_name, 2, replicas(link.destination))])
    ensure_state_topics(admin, link.name, replicas(link.destination))
    monkeypatch.setattr("support.links.handmade.ends", lambda *_: [0, 0, 0])
    link.publish()
    link.start_slot()
    produce(link, topic_name, 30)
    row = link.until_waiting(topic_name, 2, Reason.DESTINATION_HAS_FEWER_PARTITIONS)
    assert f"topic {topic_name} has 2 partitions on the destination" in row.detail
    eventually(lambda: ends(link.destination, topic_name, 2) == [10, 10], what="the others are copied")
    admin.grow_each({topic_name: 3}).or_raise()
    link.until_copied()


def set_config(link: EngineLink, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = AdminClient(link.destination.client_properties)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def delete(cluster: Any, topic: str) -> None:
    admin = AdminClient(cluster.client_properties)
    for future in admin.delete_topics([topic], operation_timeout=30).values():
        future.result()
    eventually(lambda: topic not in admin.list_topics(timeout=10).topics, what="the topic is gone")


def recreate(cluster: Any, topic: str) -> None:
    delete(cluster, topic)
    eventually(
        lambda: topic in Admin(cluster.client_properties, "it").create([NewTopic(topic, 1, 1)]),
        what="it is there again",
    )
