"""Fetch, versions 12 to 17: the request is encoded and the reply decoded by hand, since its records must stay views.

From version 13 on topics are identified by ID (KIP-516), so a topic that was deleted and recreated is never mistaken
for its predecessor; version 12, for brokers before 3.1, identifies them by name.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from strait.wire.primitives import (
    NO_TAGS,
    Topic,
    decoding,
    encode_compact_string,
    encode_topic,
    encode_uvarint,
    ending,
    read_tags,
    read_topic,
    read_uvarint,
    skip_tags,
)

API_KEY = 1
VERSIONS = (12, 17)
BY_NAME = (12, 12)
"""The versions that identify topics by name rather than by ID."""
READ_COMMITTED = 1
READ_UNCOMMITTED = 0
NO_SESSION = (0, -1)

_HEAD = Struct(">iiibii")  # max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch
_REPLICA = Struct(">i")
_PARTITION = Struct(">iiqiqi")  # partition, leader epoch, offset, last fetched epoch, log start, max bytes
_REPLY = Struct(">ihi")  # throttle_ms, error, session
_RESULT = Struct(">ihqqq")  # partition, error, high watermark, last stable offset, log start offset
_NUMBER = Struct(">i")
_ABORTED = Struct(">qq")
_DIVERGING = Struct(">iq")
_DIVERGING_TAG = 0


class FetchPosition(NamedTuple):
    """The position from which to read one partition.

    ``last_epoch`` is the leader epoch of the record before ``offset``, from its batch. With it the broker compares its
    history with ours and returns the point of divergence in ``Fetched.diverging``; -1 omits that.
    """

    partition: int
    leader_epoch: int
    offset: int
    max_bytes: int
    last_epoch: int = -1


class Fetched(NamedTuple):
    """One partition of a reply. ``topic`` is the name or the ID in the request; ``records`` may end in a partial batch.

    ``aborted``: (producer ID, first offset) of each aborted transaction that these records may hold, as listed by the
    broker; empty unless ``READ_COMMITTED``. ``diverging``: (epoch, its end offset) from which on our history differs
    from the broker's. ``preferred``: ID of the replica that the leader wants these records to be read from (KIP-392);
    -1: itself. If there is one, the reply has no records.
    """

    topic: Topic
    partition: int
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start: int
    records: memoryview
    aborted: tuple[tuple[int, int], ...] = ()
    diverging: tuple[int, int] | None = None
    preferred: int = -1


def encode_request(
    version: int,
    topics: Iterable[tuple[Topic, list[FetchPosition]]],
    *,
    max_wait_ms: int,
    max_bytes: int,
    min_bytes: int = 1,
    isolation: int = READ_COMMITTED,
    session: tuple[int, int] = NO_SESSION,
    forgotten: Iterable[tuple[Topic, list[int]]] = (),
    rack: str = "",
) -> bytes:
    """Return the request's body, without its header. ``session`` (id, epoch) and ``forgotten`` are `FetchSession`'s.
    ``rack``: that of this client, by which a leader chooses ``Fetched.preferred``; "": none is chosen."""
    asked = list(topics)
    parts = [] if version >= 15 else [_REPLICA.pack(-1)]
    parts += [_HEAD.pack(max_wait_ms, min_bytes, max_bytes, isolation, *session), encode_uvarint(len(asked) + 1)]
    for topic, positions in asked:
        parts += (encode_topic(topic), encode_uvarint(len(positions) + 1))
        for number, epoch, offset, share, last_epoch in positions:
            parts += (_PARTITION.pack(number, epoch, offset, last_epoch, -1, share), NO_TAGS)
        parts.append(NO_TAGS)
    dropped = list(forgotten)
    parts.append(encode_uvarint(len(dropped) + 1))
    for topic, numbers in dropped:
        parts += (encode_topic(topic), encode_uvarint(len(numbers) + 1))
        parts += (*map(_NUMBER.pack, numbers), NO_TAGS)
    parts += (encode_compact_string(rack), NO_TAGS)
    return b"".join(parts)


def session_id(frame: memoryview) -> int:
    """Return the ID of the session that a reply belongs to; 0 if the broker keeps none. Raises ProtocolError."""
    with decoding("a fetch reply"):
        session: int = _REPLY.unpack_from(frame, skip_tags(frame, 4))[2]
    return session


def decode_reply(version: int, frame: memoryview) -> tuple[int, int, list[Fetched]]:
    """Decode a whole reply, header included.

    Returns:
        (error of the whole request, throttle in ms, partitions in the broker's order). Records are views into
        ``frame``.

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
        ending(frame, skip_tags(frame, at))
    return error, throttle_ms, result


def _decode_partition(frame: memoryview, at: int, topic: Topic) -> tuple[Fetched, int]:
    partition, error, high_watermark, last_stable, log_start = _RESULT.unpack_from(frame, at)
    count, at = read_uvarint(frame, at + _RESULT.size)
    aborted = []
    for _ in range(count - 1):
        aborted.append(_ABORTED.unpack_from(frame, at))
        at = skip_tags(frame, at + _ABORTED.size)
    (preferred,) = _NUMBER.unpack_from(frame, at)
    size, at = read_uvarint(frame, at + _NUMBER.size)
    end = at + max(0, size - 1)
    records = frame[at:end]
    diverging, at = _read_diverging(frame, end)  # missing if the records are cut short
    found = tuple(aborted)
    return (
        Fetched(topic, partition, error, high_watermark, last_stable, log_start, records, found, diverging, preferred),
        at,
    )


def _read_diverging(frame: memoryview, at: int) -> tuple[tuple[int, int] | None, int]:
    """Return the only tagged field of a partition that is used, and the position after all tagged fields."""
    if frame[at] == 0:
        return None, at + 1
    diverging = None
    tags, at = read_tags(frame, at)
    for tag, start in tags:
        if tag == _DIVERGING_TAG:
            epoch, end_offset = _DIVERGING.unpack_from(frame, start)
            diverging = (epoch, end_offset)
    return diverging, at
