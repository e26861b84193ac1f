"""Reading whole topics with Kafka's ordinary client, and holding a copy against its source record by record."""

import time
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from strait.embedded.kafka import Cluster
from strait.kafka.translate import translate

_PATIENCE_SECONDS = 60.0


class Record(NamedTuple):
    """All that a reader sees of a record."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: tuple[int, int]


def ends(cluster: Cluster, topic: str, partitions: int) -> list[int]:
    """The end offset of each partition. Asks again while leaders move."""
    asked = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(partitions)}
    client = AdminClient(cluster.client_properties)  # kept until the answers are there: without it they never come
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        found = client.list_offsets(asked, request_timeout=30)
        try:
            return [found[TopicPartition(topic, partition)].result().offset for partition in range(partitions)]
        except KafkaException as error:
            passing = translate(error, cluster="it", doing="asking for end offsets").retriable
            if not passing or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def read_all(cluster: Cluster, topic: str, partitions: int) -> list[list[Record]]:
    """Every record of each partition up to its end now, as a reader with default settings sees them."""
    consumer = Consumer(
        cluster.client_properties
        | {"group.id": "comparison", "enable.auto.commit": False, "enable.partition.eof": True, "check.crcs": True}
    )
    found: list[list[Record]] = [[] for _ in range(partitions)]
    open_partitions = set(range(partitions))
    deadline = time.monotonic() + _PATIENCE_SECONDS
    try:
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
        while open_partitions:
            messages = consumer.consume(10_000, timeout=0.2)  # waits for all of them, or for all of that time
            deadline = time.monotonic() + _PATIENCE_SECONDS if messages else deadline
            assert time.monotonic() < deadline, (
                f"{topic}: nothing more came, though {open_partitions} are not at their ends"
            )
            for message in messages:
                if message.error() is not None:
                    assert message.error().name() == "_PARTITION_EOF", str(message.error())
                    open_partitions.discard(message.partition())
                    continue
                found[message.partition()].append(
                    Record(
                        message.offset(),
                        message.key(),
                        message.value(),
                        tuple(message.headers() or ()),
                        message.timestamp(),
                    )
                )
    finally:
        consumer.close()
    return found


def assert_equal(source: list[list[Record]], destination: list[list[Record]]) -> None:
    """Equal record by record: key, value, headers, timestamp and its type, partition, order, and offset."""
    assert len(source) == len(destination)
    for partition, (ours, theirs) in enumerate(zip(source, destination, strict=True)):
        for one, other in zip(ours, theirs, strict=False):
            assert one == other, f"partition {partition}: source {one}, destination {other}"
        assert len(ours) == len(theirs), f"partition {partition}: {len(ours)} at the source, {len(theirs)} copied"
