"""Kafka's flexible encoding (KIP-482): unsigned varints, compact strings, tagged fields. All integers are big
endian."""

from struct import error as struct_error
from types import TracebackType

from strait.errors import ProtocolError

NO_TAGS = b"\0"
TOPIC_ID_BYTES = 16

Topic = str | bytes
"""A topic as requests identify it: by its name, or by its ID as on the wire (KIP-516)."""


def encode_uvarint(value: int) -> bytes:
    """Encode as unsigned LEB128."""
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE = [bytes([value]) for value in range(0x80)]


def encode_compact_string(text: str) -> bytes:
    """Encode as length + 1 as a uvarint, then UTF-8."""
    raw = text.encode()
    return encode_uvarint(len(raw) + 1) + raw


def read_uvarint(frame: memoryview, at: int) -> tuple[int, int]:
    """Return (value, position after it). More than 5 bytes raise ProtocolError: Kafka has no such value."""
    value = frame[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        byte = frame[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise ProtocolError("a varint in a reply is longer than 5 bytes")


def read_compact_string(frame: memoryview, at: int) -> tuple[str | None, int]:
    """Return (text or None for null, position after it)."""
    length, at = read_uvarint(frame, at)
    if length == 0:
        return None, at
    end = at + length - 1
    if end > len(frame):
        raise IndexError
    return str(frame[at:end], "utf-8", "replace"), end


def encode_topic(topic: Topic) -> bytes:
    return topic if isinstance(topic, bytes) else encode_compact_string(topic)


def read_topic(frame: memoryview, at: int, *, by_id: bool) -> tuple[Topic, int]:
    """Return (topic's ID or name, position after it)."""
    if by_id:
        behind = at + TOPIC_ID_BYTES
        if behind > len(frame):
            raise IndexError
        return bytes(frame[at:behind]), behind
    name, at = read_compact_string(frame, at)
    return name or "", at


def skip_tags(frame: memoryview, at: int) -> int:
    """Return the position after a block of tagged fields whose content is not needed."""
    return at + 1 if frame[at] == 0 else read_tags(frame, at)[1]


def read_tags(frame: memoryview, at: int) -> tuple[list[tuple[int, int]], int]:
    """Return ((tag, position of its content) for each tagged field, position after all of them)."""
    tags = []
    count, at = read_uvarint(frame, at)
    for _ in range(count):
        tag, at = read_uvarint(frame, at)
        size, at = read_uvarint(frame, at)
        tags.append((tag, at))
        at += size
    if at > len(frame):
        raise IndexError
    return tags, at


def ending(frame: memoryview, at: int) -> None:
    """Raise ProtocolError unless the reply ends after its last field: more bytes show that a field was misread."""
    if at != len(frame):
        raise ProtocolError(f"a reply has {len(frame) - at} bytes behind its last field")


class decoding:
    """Convert any error from reading past the end of a frame to a ProtocolError that names the data being read."""

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None and issubclass(kind, (IndexError, struct_error)):
            raise ProtocolError(f"{self._what} is cut short or malformed") from error
