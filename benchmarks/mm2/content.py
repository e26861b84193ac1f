"""What a topic holds, record by record, as an ordinary consumer sees it: so that nobody wins by losing records."""

import hashlib
import struct
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from mm2.progress import Advance
from mm2.workloads import PARTITIONS
from strait.errors import MeasurementError
from strait.kafka.clients import Watch, make_consumer

_AT_ONCE = 10_000
_TIMEOUT_SECONDS = 60.0
_LENGTHS_AND_TIME = struct.Struct(">iiq")
_NONE = -1


def digests(
    cluster: str, properties: Mapping[str, str], topic: str, expected: int, advance: Advance
) -> tuple[str, ...]:
    """One digest for each partition, over key, value and timestamp of each record, in order.

    Raises:
        MeasurementError: it holds fewer than ``expected`` records.
    """
    watch = Watch(cluster)
    consumer = make_consumer(properties, watch, group_id="strait-bench", auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        return _read(consumer, watch, topic, expected, advance)
    finally:
        consumer.close()


def _read(consumer: Consumer, watch: Watch, topic: str, expected: int, advance: Advance) -> tuple[str, ...]:
    hashes = [hashlib.blake2b(digest_size=16) for _ in range(PARTITIONS)]
    read = 0
    while read < expected:
        messages = consumer.consume(min(_AT_ONCE, expected - read), _TIMEOUT_SECONDS)
        if not messages:
            raise MeasurementError(f"cluster {watch.cluster}: reading topic {topic}: {read} of {expected} records came")
        for message in messages:
            if (error := message.error()) is not None:
                raise watch.translate(KafkaException(error), f"reading topic {topic}")
            key, value = message.key(), message.value()
            digest = hashes[message.partition()]
            digest.update(_LENGTHS_AND_TIME.pack(_length(key), _length(value), message.timestamp()[1]))
            digest.update(key or b"")
            digest.update(value or b"")
        read += len(messages)
        advance(read)
    return tuple(digest.hexdigest() for digest in hashes)


def _length(part: bytes | None) -> int:
    return _NONE if part is None else len(part)
