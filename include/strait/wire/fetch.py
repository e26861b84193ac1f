"""Fetch, versions 12 to 17: the request built and the reply walked by hand, since its records must stay views.

From version 13 on topics go by id (KIP-516), so a topic deleted and created again is never mistaken for its predecessor;
version 12, for brokers before 3.1, goes by name.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from strait.wire.primitives import (
    NO_TAGS,
    decoding,
    encode_compact_string,
    encode_uvarint,
    read_topic,
    read_uvarint,
    skip_tags,
)

API_KEY = 1
VERSIONS = (12, 17)
READ_COMMITTED = 1
READ_UNCOMMITTED = 0

_HEAD = Struct(">iiibii")  # max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch
_REPLICA = Struct(">i")
_PARTITION = Struct(">iiqiqi")  # partition, leader epoch, offset, last fetched epoch, log start, max bytes
_REPLY = Struct(">ihi")  # throttle_ms, error, session
_RESULT = Struct(">ihqqq")  # partition, error, high watermark, last stable offset, log start offset
_NO_SESSION = (0, -1)


class FetchPosition(NamedTuple):
    """Where to read one partition from."""

    partition: int
    leader_epoch: int
    offset: int
    max_bytes: int


class Fetched(NamedTuple):
    """One partition of a reply. ``topic`` is the name or the id it was asked by; ``records`` may end in half a batch."""

    topic: str | UUID
    partition: int
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start: int
    records: memoryview


def encode_request(
    version: int,
    topics: Iterable[tuple[str | UUID, list[FetchPosition]]],
    *,
    max_wait_ms: int,
    max_bytes: int,
    min_bytes: int = 1,
    isolation: int = READ_COMMITTED,
) -> bytes:
    """The request's body, without its header."""
    asked = list(topics)
    parts = [] if version >= 15 else [_REPLICA.pack(-1)]
    parts += [_HEAD.pack(max_wait_ms, min_bytes, max_bytes, isolation, *_NO_SESSION), encode_uvarint(len(asked) + 1)]
    for topic, positions in asked:
        parts.append(topic.bytes if isinstance(topic, UUID) else encode_compact_string(topic))
        parts.append(encode_uvarint(len(positions) + 1))
        for position in positions:
            parts.append(
                _PARTITION.pack(position.partition, position.leader_epoch, position.offset, -1, -1, position.max_bytes)
            )
            parts.append(NO_TAGS)
        parts.append(NO_TAGS)
    parts += [encode_uvarint(1), b"\x01", NO_TAGS]  # no forgotten topics, empty rack
    return b"".join(parts)


def decode_reply(version: int, frame: memoryview) -> tuple[int, int, list[Fetched]]:
    """Read a whole reply, header included.

    Returns:
        (error of the whole request, throttle in ms, partitions in the broker's order). Records are views into ``frame``.

    Raises:
        ProtocolError: it is cut short or malformed.
    """
    result = []
    with decoding("a fetch reply"):
        at = skip_tags(frame, 4)
        throttle_ms, error, _ = _REPLY.unpack_from(frame, at)
        topics, at = read_uvarint(frame, at + _REPLY.size)
        for _ in range(topics - 1):
            topic, at = read_topic(frame, at, by_id=version >= 13)
            partitions, at = read_uvarint(frame, at)
            for _ in range(partitions - 1):
                fetched, at = _decode_partition(frame, at, topic)
                result.append(fetched)
            at = skip_tags(frame, at)
        skip_tags(frame, at)
    return error, throttle_ms, result


def _decode_partition(frame: memoryview, at: int, topic: str | UUID) -> tuple[Fetched, int]:
    partition, error, high_watermark, last_stable, log_start = _RESULT.unpack_from(frame, at)
    aborted, at = read_uvarint(frame, at + _RESULT.size)
    for _ in range(aborted - 1):
        at = skip_tags(frame, at + 16)
    size, at = read_uvarint(frame, at + 4)  # behind the preferred read replica
    end = at + max(0, size - 1)
    if end > len(frame):
        raise IndexError
    fetched = Fetched(topic, partition, error, high_watermark, last_stable, log_start, frame[at:end])
    return fetched, skip_tags(frame, end)
