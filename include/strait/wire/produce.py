"""Produce, versions 9 to 13: frames made of views, so that batches go from the fetch buffer to the socket uncopied.

At most one batch for each partition in a request (a broker rule). From version 13 on topics are identified by ID, so
nothing is ever written to a topic that was deleted and recreated.
"""

from collections.abc import Mapping, Sequence
from struct import Struct
from typing import NamedTuple

from strait.wire.primitives import (
    NO_TAGS,
    Topic,
    decoding,
    encode_topic,
    encode_uvarint,
    ending,
    read_compact_string,
    read_topic,
    read_uvarint,
    skip_tags,
)

API_KEY = 0
VERSIONS = (9, 13)
ACKS_ALL = -1

_HEAD = Struct(">hi")  # acks, timeout_ms
_INDEX = Struct(">i")
_RESULT = Struct(">ihqqq")  # partition, error, base offset, log append time, log start
_NOTHING_MORE = b"\x01\0\0"  # no record errors, no message, no tags: the usual case


class Produced(NamedTuple):
    """One partition of a reply. ``log_append_time_ms`` is -1 if the topic keeps the records' own timestamps."""

    topic: Topic
    partition: int
    error: int
    base_offset: int
    log_append_time_ms: int
    log_start: int
    message: str | None


def encode_request(
    topics: Mapping[Topic, Sequence[tuple[int, memoryview]]], timeout_ms: int
) -> list[bytes | memoryview]:
    """Return the request's body as buffers to send in order. ``topics``: for each its (partition, batch) pairs."""
    pieces: list[bytes | memoryview] = []
    pending = b"\0" + _HEAD.pack(ACKS_ALL, timeout_ms) + encode_uvarint(len(topics) + 1)  # no transactional id
    for topic, batches in topics.items():
        pending += encode_topic(topic)
        pending += encode_uvarint(len(batches) + 1)
        for partition, batch in batches:
            pieces.append(pending + _INDEX.pack(partition) + encode_uvarint(len(batch) + 1))
            pieces.append(batch)
            pending = NO_TAGS
        pending += NO_TAGS
    pieces.append(pending + NO_TAGS)
    return pieces


def decode_reply(version: int, frame: memoryview) -> tuple[int, list[Produced]]:
    """Decode a whole reply, header included: (throttle in ms, partitions). Raises ProtocolError."""
    result = []
    with decoding("a produce reply"):
        topics, at = read_uvarint(frame, skip_tags(frame, 4))
        for _ in range(topics - 1):
            topic, at = read_topic(frame, at, by_id=version >= 13)
            partitions, at = read_uvarint(frame, at)
            for _ in range(partitions - 1):
                index, error, base_offset, append_time, log_start = _RESULT.unpack_from(frame, at)
                at += _RESULT.size
                if frame[at : at + 3] == _NOTHING_MORE:
                    at += 3
                    result.append(Produced(topic, index, error, base_offset, append_time, log_start, None))
                    continue
                record_errors, at = read_uvarint(frame, at)
                message = None
                for _ in range(record_errors - 1):
                    message, at = read_compact_string(frame, at + 4)
                    at = skip_tags(frame, at)
                whole, at = read_compact_string(frame, at)
                at = skip_tags(frame, at)
                result.append(Produced(topic, index, error, base_offset, append_time, log_start, whole or message))
            at = skip_tags(frame, at)
        (throttle_ms,) = _INDEX.unpack_from(frame, at)
        ending(frame, skip_tags(frame, at + _INDEX.size))
    return throttle_ms, result
