"""Reading whole topics with Kafka's ordinary client, and holding a copy against its source record by record."""

import time
from collections import deque
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_CREATE_TIME, Consumer, TopicPartition

from strait.embedded.kafka import Cluster
from support.kafka.log_ends import ends

_PATIENCE_SECONDS = 60.0


class Record(NamedTuple):
    """All that a reader sees of a record."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: tuple[int, int]


def read(cluster: Cluster, topic: str, partitions: int) -> Iterator[tuple[int, Record]]:
    """Partition and record, of each partition in order and up to its end now, as a reader with default settings sees
    them."""
    consumer = Consumer(
        cluster.client_properties
        | {"group.id": "comparison", "enable.auto.commit": False, "enable.partition.eof": True, "check.crcs": True}
    )
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
                yield (
                    message.partition(),
                    Record(
                        message.offset(),
                        message.key(),
                        message.value(),
                        tuple(message.headers() or ()),
                        message.timestamp(),
                    ),
                )
    finally:
        consumer.close()


def read_all(cluster: Cluster, topic: str, partitions: int) -> list[list[Record]]:
    """Every record of each partition."""
    found: list[list[Record]] = [[] for _ in range(partitions)]
    for partition, record in read(cluster, topic, partitions):
        found[partition].append(record)
    return found


def assert_copied(source: Cluster, destination: Cluster, topic: str, partitions: int) -> int:
    """Hold a topic that no memory would hold against its copy, in pieces; returns its number of records.

    Equal is what ``assert_equal`` calls equal; only what one side is ahead of the other is kept.
    """
    ours: list[deque[Record]] = [deque() for _ in range(partitions)]
    theirs: list[deque[Record]] = [deque() for _ in range(partitions)]
    compared = 0
    for one, other in zip_longest(read(source, topic, partitions), read(destination, topic, partitions)):
        if one is None or other is None:
            counts = [sum(ends(cluster, topic, partitions)) for cluster in (source, destination)]
            raise AssertionError(f"{topic}: {compared} equal, ends at {counts}, next {one or other}")
        ours[one[0]].append(one[1])
        theirs[other[0]].append(other[1])
        for partition in {one[0], other[0]}:
            while ours[partition] and theirs[partition]:
                written, copied = ours[partition].popleft(), theirs[partition].popleft()
                assert written == copied, f"{topic}-{partition}: source {written}, destination {copied}"
                compared += 1
    assert not any(ours) and not any(theirs), f"{topic}: its partitions are not of equal length"
    return compared


def assert_equal(source: list[list[Record]], destination: list[list[Record]]) -> None:
    """Equal record by record: key, value, headers, timestamp and its type, partition, order, and offset."""
    assert len(source) == len(destination)
    for partition, (ours, theirs) in enumerate(zip(source, destination, strict=True)):
        for one, other in zip(ours, theirs, strict=False):
            assert one == other, f"partition {partition}: source {one}, destination {other}"
        assert len(ours) == len(theirs), f"partition {partition}: {len(ours)} at the source, {len(theirs)} copied"


def assert_same_records(source: list[list[Record]], destination: list[list[Record]]) -> None:
    """Equal record by record but for the offsets, which the copy has of its own; timestamps arrive as CreateTime."""
    expected = [
        [
            record._replace(offset=at, timestamp=(TIMESTAMP_CREATE_TIME, record.timestamp[1]))
            for at, record in enumerate(partition)
        ]
        for partition in source
    ]
    assert_equal(expected, [[record._replace(offset=at) for at, record in enumerate(one)] for one in destination])
