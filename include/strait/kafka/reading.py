"""Reading a topic of one partition once, from an offset or time to its end; and records of many partitions."""

import sys
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_END, Consumer, KafkaError, Message, TopicPartition

from strait.config.cluster_identity import require_expected
from strait.config.route_names import in_layers
from strait.config.topic_names import STATE_PREFIX
from strait.errors import ClusterUnavailable
from strait.kafka.clients import Watch, ask, make_consumer
from strait.kafka.translate import unreadable
from strait.model import TopicPartition as Partition

_SECONDS = 60.0  # timeout without an answer
_AT_ONCE = 1000
_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001
_MISSING = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC)  # noqa: SLF001


def read_topic(
    properties: Mapping[str, str],
    cluster: str,
    topic: str,
    *,
    first: int = 0,
    since_ms: int | None = None,
    reader: str = "",
) -> Iterator[Message]:
    """Yield every committed record up to the end that the topic has when it is reached. A missing topic has none.

    Args:
        first: the offset to start at; if it was deleted, the first that exists.
        since_ms: start at the first record with this timestamp or a later one instead.
        reader: prefix of the ID of the consumer group that librdkafka requires and does not use; "": the topic.

    Raises:
        ClusterUnavailable, NotAuthorized
    """
    watch = Watch(cluster)
    consumer = _make_consumer(properties, watch, reader or topic)
    try:
        if _exists(consumer, watch, properties, topic):
            begin = first if since_ms is None else _offset_at(consumer, watch, topic, since_ms)
            consumer.assign([TopicPartition(topic, 0, begin)])
            yield from _until_end(consumer, watch, topic)
    finally:
        consumer.close()


def log_range(properties: Mapping[str, str], cluster: str, topic: str) -> tuple[int, int]:
    """Return the topic's first offset, and the end of its committed records. A missing topic is empty.

    Raises:
        ClusterUnavailable, NotAuthorized
    """
    watch = Watch(cluster)
    consumer = _make_consumer(properties, watch, topic)

    def call(seconds: float) -> Any:
        return consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=seconds, cached=False)

    try:
        if not _exists(consumer, watch, properties, topic):
            return 0, 0
        first, end = ask(watch, f"looking up the end of {topic}", _SECONDS, call)
        return int(first), int(end)
    finally:
        consumer.close()


class Content(NamedTuple):
    """A record without its position."""

    key: bytes | None
    value: bytes | None
    timestamp: tuple[int, int]
    headers: tuple[tuple[str, bytes | None], ...]


def first_records(
    properties: Mapping[str, str], cluster: str, places: Mapping[Partition, int]
) -> dict[Partition, Content | None]:
    """Return the first committed record of each partition at its offset or after it; None if there is none.

    Raises:
        ClusterUnavailable, NotAuthorized
    """
    firsts: dict[Partition, Content | None] = dict.fromkeys(places)
    for layer in in_layers(places):
        found: dict[Partition, Content] = {}
        ranges = {there: (places[name], sys.maxsize) for there, name in layer.items()}
        for message in read_ranges(properties, cluster, ranges, found):
            found[Partition(message.topic(), message.partition())] = _content(message)
        firsts |= {layer[there]: content for there, content in found.items()}
    return firsts


def _content(message: Message) -> Content:
    return Content(message.key(), message.value(), message.timestamp(), tuple(message.headers() or ()))


def read_under_names(
    properties: Mapping[str, str], cluster: str, ranges: Mapping[Partition, tuple[int, int]]
) -> Iterator[tuple[Partition, Message]]:
    """Yield the records as `read_ranges` does, each with its partition as ``ranges`` names it: routes of one topic have
    separate ranges, and are read one after the other."""
    for layer in in_layers(ranges):
        for message in read_ranges(properties, cluster, {there: ranges[name] for there, name in layer.items()}):
            yield layer[Partition(message.topic(), message.partition())], message


def read_ranges(
    properties: Mapping[str, str],
    cluster: str,
    ranges: Mapping[Partition, tuple[int, int]],
    done: Collection[Partition] = (),
    *,
    committed: bool = True,
) -> Iterator[Message]:
    """Yield every committed record of each partition with an offset from ``ranges[partition][0]`` on and below
    ``ranges[partition][1]``, in order within each; deleted offsets are skipped.

    Args:
        done: partitions of which no more records are wanted; checked while reading.
        committed: if not, yield those of aborted and open transactions, too.

    Raises:
        ClusterUnavailable, NotAuthorized
    """
    left = {place: end for place, (first, end) in ranges.items() if first < end}
    if not left:
        return
    watch = Watch(cluster)
    consumer = _make_consumer(properties, watch, STATE_PREFIX.rstrip("."), committed=committed)
    try:
        consumer.assign([TopicPartition(*place, ranges[place][0]) for place in left])
        deadline = time.monotonic() + _SECONDS
        while left:
            messages = consumer.consume(_AT_ONCE, timeout=0.2)
            if messages:
                deadline = time.monotonic() + _SECONDS
            elif time.monotonic() > deadline:
                raise ClusterUnavailable(cluster, f"reading {min(left)}: timed out")
            for message in messages:
                place = Partition(message.topic(), message.partition())
                error = message.error()
                if error is not None and error.code() not in (_EOF, KafkaError.GROUP_AUTHORIZATION_FAILED):
                    raise unreadable(error, cluster, place.topic) or watch.translate(error, f"reading {place}")
                if place not in left:
                    continue
                if error is None and message.offset() < left[place]:
                    yield message
                is_over = error is not None or message.offset() + 1 >= left[place] or place in done
                if is_over and (error is None or error.code() == _EOF):
                    del left[place]
                    consumer.incremental_unassign([TopicPartition(*place)])
    finally:
        consumer.close()


def _make_consumer(properties: Mapping[str, str], watch: Watch, name: str, *, committed: bool = True) -> Consumer:
    return make_consumer(
        properties,
        watch,
        group_id=f"{name}.read",  # required by librdkafka, not used
        isolation_level="read_committed" if committed else "read_uncommitted",
        enable_partition_eof=True,
        auto_offset_reset="earliest",
        fetch_wait_max_ms=100,  # an empty fetch reports the end of a topic
    )


def _until_end(consumer: Consumer, watch: Watch, topic: str) -> Iterator[Message]:
    deadline = time.monotonic() + _SECONDS
    while True:
        message = consumer.poll(0.5)
        error = None if message is None else message.error()
        if message is None:
            if time.monotonic() > deadline:
                raise ClusterUnavailable(watch.cluster, f"reading {topic}: timed out")
        elif error is None:
            yield message
            deadline = time.monotonic() + _SECONDS
        elif error.code() == _EOF:
            return
        elif error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:  # concerns a group that is not used
            raise unreadable(error, watch.cluster, topic) or watch.translate(error, f"reading {topic}")


def _exists(consumer: Consumer, watch: Watch, properties: Mapping[str, str], topic: str) -> bool:
    def call(seconds: float) -> Any:
        try:
            return consumer.list_topics(topic, timeout=seconds)
        finally:
            consumer.poll(0)  # librdkafka reports connection errors only during a poll

    metadata = ask(watch, f"looking for {topic}", _SECONDS, call)
    require_expected(watch.cluster, properties, metadata.cluster_id)
    error = metadata.topics[topic].error
    if error is not None and error.code() not in _MISSING:
        raise unreadable(error, watch.cluster, topic) or watch.translate(error, f"looking for {topic}")
    return error is None


def _offset_at(consumer: Consumer, watch: Watch, topic: str, time_ms: int) -> int:
    def call(seconds: float) -> Any:
        return consumer.offsets_for_times([TopicPartition(topic, 0, time_ms)], timeout=seconds)

    offset = ask(watch, f"looking up a time in {topic}", _SECONDS, call)[0].offset
    return int(offset) if offset >= 0 else OFFSET_END
