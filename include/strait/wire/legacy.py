"""Message sets of magic 0 and 1, as Kafka before 0.11 stored them: a broker returns such segments as they are stored.

Each entry is (offset i64, length i32) and a message:
    crc u32 | magic i8 | attributes i8 | timestamp i64 (magic 1 only) | key i32 and bytes | value i32 and bytes
The CRC-32 covers everything from the magic on; a length of -1 is null. The value of a message with a codec is a message
set of the same magic, whose offsets are absolute (magic 0) or relative, the last one corresponding to the wrapper's
offset (magic 1).
"""

from collections.abc import Iterator
from itertools import pairwise
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple
from zlib import crc32

from strait.errors import CorruptBatch
from strait.wire.compression import LZ4, NONE, decompress
from strait.wire.records import Record

_ENTRY = Struct(">qi")
_HEAD = Struct(">Ibb")
_CRC_BYTES = 4
_TIMESTAMP = Struct(">q")
_LENGTH = Struct(">i")

_CODEC_MASK = 0x07
_LOG_APPEND_TIME = 0x08
_NO_TIMESTAMP = -1

_LZ4_HEADER_BYTES = 7  # magic number, flags, block size, checksum of the two
_LZ4_CONTENT_SIZE = 0x08
_CONTENT_SIZE_BYTES = 8
_MASK = 0xFFFFFFFF


class _Message(NamedTuple):
    offset: int
    magic: int
    attributes: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> int:
        return self.attributes & _CODEC_MASK


def read_legacy(view: memoryview) -> list[Record]:
    """Return every record of a message set that holds only whole entries, with the offset and timestamp readers see.

    Raises:
        CorruptBatch: a length, checksum, codec or offset is invalid.
    """
    records: list[Record] = []
    for message in _messages(view):
        try:
            found = [message] if message.codec == NONE else _unwrapped(message)
        except CorruptBatch as error:
            raise CorruptBatch(f"message at offset {message.offset}: {error.message}") from error
        records += (Record(each.offset, each.timestamp_ms, each.key, each.value, ()) for each in found)
    if any(one.offset >= other.offset for one, other in pairwise(records)):
        raise CorruptBatch(f"offsets do not rise in the messages from {records[0].offset} on")
    return records


def _unwrapped(wrapper: _Message) -> list[_Message]:
    if wrapper.value is None:
        raise CorruptBatch("it is compressed and null")
    packed = memoryview(wrapper.value)
    if wrapper.magic == 0 and wrapper.codec == LZ4:
        packed = _with_right_checksum(packed)
    inner = list(_messages(decompress(packed, wrapper.codec)))
    if not inner or any(each.codec or each.magic != wrapper.magic for each in inner):
        raise CorruptBatch("it wraps nothing, or messages that are compressed themselves or of another format")
    shift = wrapper.offset - inner[-1].offset if wrapper.magic else 0
    timestamp_ms = wrapper.timestamp_ms if wrapper.attributes & _LOG_APPEND_TIME else None
    return [
        each._replace(
            offset=each.offset + shift, timestamp_ms=each.timestamp_ms if timestamp_ms is None else timestamp_ms
        )
        for each in inner
    ]


def _messages(view: memoryview) -> Iterator[_Message]:
    at = 0
    try:
        while at < len(view):
            offset, length = _ENTRY.unpack_from(view, at)
            at += _ENTRY.size
            if not 0 <= length <= len(view) - at:
                raise CorruptBatch(f"message at offset {offset}: {length} bytes, where {len(view) - at} are left")
            yield _message(offset, view[at : at + length])
            at += length
    except struct_error as error:
        raise CorruptBatch(f"a message is cut short: {error}") from error


def _message(offset: int, message: memoryview) -> _Message:
    crc, magic, attributes = _HEAD.unpack_from(message)
    if crc32(message[_CRC_BYTES:]) != crc:
        raise CorruptBatch(f"message at offset {offset}: the checksum does not match its {len(message)} bytes")
    at, timestamp_ms = _HEAD.size, _NO_TIMESTAMP
    if magic == 1:
        (timestamp_ms,) = _TIMESTAMP.unpack_from(message, at)
        at += _TIMESTAMP.size
    elif magic:
        raise CorruptBatch(f"message at offset {offset}: magic {magic} is neither 0 nor 1")
    key, at = _read_bytes(message, at)
    value, at = _read_bytes(message, at)
    if at != len(message):
        raise CorruptBatch(f"message at offset {offset}: {len(message) - at} bytes behind its value")
    return _Message(offset, magic, attributes, timestamp_ms, key, value)


def _read_bytes(message: memoryview, at: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(message, at)
    at += _LENGTH.size
    if length == -1:
        return None, at
    if not 0 <= length <= len(message) - at:
        raise CorruptBatch(f"{length} bytes of a key or value, where {len(message) - at} are left")
    return bytes(message[at : at + length]), at + length


def _with_right_checksum(frame: memoryview) -> memoryview:
    """Return the LZ4 frame with a valid header checksum. Clients of magic 0 computed it from the wrong bytes
    (KAFKA-3160)."""
    if len(frame) < _LZ4_HEADER_BYTES:
        raise CorruptBatch(f"{len(frame)} bytes are no LZ4 frame")
    flags, block_size = frame[4] & ~_LZ4_CONTENT_SIZE, frame[5]
    behind = _LZ4_HEADER_BYTES + (_CONTENT_SIZE_BYTES if frame[4] & _LZ4_CONTENT_SIZE else 0)
    described = bytes((flags, block_size))
    header = bytes(frame[:4]) + described + bytes((_xxh32_of_few(described) >> 8 & 0xFF,))
    return memoryview(header + bytes(frame[behind:]))


def _xxh32_of_few(data: bytes) -> int:
    """Return the 32-bit xxHash with seed 0 of fewer than 4 bytes."""
    state = 374761393 + len(data)
    for byte in data:
        state = state + byte * 374761393 & _MASK
        state = (state << 11 | state >> 21) * 2654435761 & _MASK
    state = (state ^ state >> 15) * 2246822519 & _MASK
    state = (state ^ state >> 13) * 3266489917 & _MASK
    return state ^ state >> 16
