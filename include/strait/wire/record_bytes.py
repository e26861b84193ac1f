"""The records inside a batch of magic 2, decoded and encoded field by field.

Complete but slow. The compiled codec does the same ten times as fast, except for two cases, which are handled here:
header keys that are not UTF-8, which librdkafka's producers may write and brokers keep, and a first timestamp of -1
("none") before others.

A record:
    length varint | attributes i8 | timestamp delta varint | offset delta varint | key | value | headers
Keys and values are a varint length (-1: null) and bytes; headers a varint count and as many pairs of the same, whose
keys are never null. All varints are zigzag. Header keys are text here, with bytes that are not UTF-8 as lone surrogates
(PEP 383): no byte is lost.
"""

from collections.abc import Iterator, Sequence

from strait.errors import CorruptBatch

KEY_ERRORS = "surrogateescape"

Headers = tuple[tuple[str, bytes | None], ...]
Fields = tuple[int, int, bytes | None, bytes | None, Headers]  # offset delta, timestamp delta, key, value, headers

_SIGN = 1 << 63
_MASK = (1 << 64) - 1


def wrapped(value: int) -> int:
    """Return the value wrapped to a signed 64-bit integer, as brokers and clients add timestamps and deltas."""
    return (value + _SIGN & _MASK) - _SIGN


def read_fields(data: bytes, count: int) -> Iterator[Fields]:
    """Yield each of ``count`` records, which must be all of ``data``. Raises CorruptBatch."""
    at = 0
    try:
        for _ in range(count):
            length, at = _read_varint(data, at)
            end = at + length
            timestamp_delta, at = _read_varint(data, at + 1)  # after the attributes, which have no bit in use
            offset_delta, at = _read_varint(data, at)
            key, at = _read_bytes(data, at)
            value, at = _read_bytes(data, at)
            headers, at = _read_headers(data, at)
            if at != end:
                raise CorruptBatch(f"a record of {length} bytes has fields of {length + at - end}")
            yield offset_delta, timestamp_delta, key, value, headers
    except IndexError as error:
        raise CorruptBatch(f"a record does not fit into what is left of {len(data)} bytes") from error
    if at != len(data):
        raise CorruptBatch(f"{len(data) - at} bytes are left behind {count} records")


def encode_fields(records: Sequence[Fields]) -> bytes:
    """Return the encoded records one after the other."""
    out = bytearray()
    for offset_delta, timestamp_delta, key, value, headers in records:
        front = b"".join((b"\0", varint(timestamp_delta), varint(offset_delta)))
        body = front + encode_content(key, value, headers)
        out += varint(len(body))
        out += body
    return bytes(out)


def encode_content(key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    """Return the part of a record that does not depend on its batch: key, value and headers."""
    return b"".join(
        (
            _nullable(key),
            _nullable(value),
            varint(len(headers)),
            *(_nullable(name.encode(errors=KEY_ERRORS)) + _nullable(content) for name, content in headers),
        )
    )


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= _MASK
            return value >> 1 ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise CorruptBatch("a varint in a record is longer than 10 bytes")


def _read_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    length, at = _read_varint(data, at)
    if length < 0:
        return None, at
    end = at + length
    if end > len(data):
        raise IndexError
    return data[at:end], end


def _read_headers(data: bytes, at: int) -> tuple[Headers, int]:
    count, at = _read_varint(data, at)
    if count < 0:
        raise CorruptBatch(f"a record has {count} headers")
    headers = []
    for _ in range(count):
        name, at = _read_bytes(data, at)
        if name is None:
            raise CorruptBatch("a header has no key")
        content, at = _read_bytes(data, at)
        headers.append((name.decode(errors=KEY_ERRORS), content))
    return tuple(headers), at


def varint(value: int) -> bytes:
    """Return the number as a zigzag varint, in 64 bits."""
    value = (value << 1 ^ value >> 63) & _MASK
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _nullable(content: bytes | None) -> bytes:
    return b"\1" if content is None else varint(len(content)) + content
