"""Writing records and waiting for their acknowledgement."""

import time
from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError, KafkaException, Message

from strait.errors import ClusterUnavailable
from strait.kafka.clients import Watch, make_producer
from strait.kafka.verified import identify

_SECONDS = 30.0
_RECORD_BYTES = 64 << 20  # before compression; the topic's own limit applies to the compressed size


def write_record(properties: Mapping[str, str], cluster: str, topic: str, key: bytes, value: bytes, doing: str) -> None:
    """Write a record to the topic's only partition; as `write_records`."""
    write_records(properties, cluster, topic, [(key, value)], doing)


def write_records(
    properties: Mapping[str, str], cluster: str, topic: str, records: Sequence[tuple[bytes, bytes]], doing: str
) -> None:
    """Write records to the topic's only partition; return once all in-sync replicas have them. At most as many as
    librdkafka queues.

    Raises:
        ClusterUnavailable, NotAuthorized: any of them may have been written or not.
    """
    watch = Watch(cluster)
    refused: list[KafkaError] = []
    written: list[int] = []

    def told(error: KafkaError | None, message: Message) -> None:
        if error is None:
            written.append(message.offset() or 0)
        else:
            refused.append(error)

    producer = make_producer(
        properties,
        watch,
        message_timeout_ms=int(_SECONDS * 1000),
        message_max_bytes=_RECORD_BYTES,
        compression_type="zstd",
    )
    identify(producer, properties, watch, doing)
    try:
        for key, value in records:
            producer.produce(topic, key=key, value=value, partition=0, on_delivery=told)
        deadline = time.monotonic() + _SECONDS
        while len(written) < len(records) and not refused and time.monotonic() < deadline:
            producer.flush(0.5)
    except KafkaException as exception:
        raise watch.translate(exception, doing) from exception
    if refused:
        raise watch.translate(refused[0], doing)
    if len(written) < len(records):
        raise ClusterUnavailable(cluster, f"{doing}: timed out")
