"""Digests by which an audit compares two logs: one of a whole batch, which needs no decompression, and one of each
record. Pure.

A passed-through batch has the same bytes after its header on both sides. One CRC-32C pass over these bytes serves three
purposes: compared with the checksum in the header, from which the header's own share is removed by linearity
(``strait.wire.crc``), it shows that the batch is undamaged; compared with the other side's, that both are equal.

A record's digest covers everything that a consumer sees of it except its offset: timestamp, key, value and headers. It
has 64 bits, which detect accidents; a strong digest is the SHA-256 of the same bytes, which also detects intent.
"""

from collections.abc import Iterable
from hashlib import sha256
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from crc32c import crc32c

from strait.errors import CorruptBatch
from strait.wire.batch import CODEC_MASK, CRC_FROM, HEADER_BYTES, LOG_APPEND_TIME, Batch
from strait.wire.compression import decompress
from strait.wire.crc import changed
from strait.wire.legacy import read_legacy
from strait.wire.record_bytes import encode_content, wrapped
from strait.wire.records import Record, read_records

try:
    from strait.wire.moving import digested
except ImportError:
    digested = None  # type: ignore[assignment]

Array = np.ndarray[Any, np.dtype[Any]]

STRONG_BYTES = 32
_STRONG = np.dtype(f"V{STRONG_BYTES}")
_TIME = Struct(">q")
_MASK = (1 << 64) - 1
_ONE, _OTHER = 0xA0761D6478BD642F, 0xE7037ED1A0B428DB
_OF_TIME = 0x8EBC6AF09C88C6E3, 0x589965CC75374CC3


class Fingerprint(NamedTuple):
    """All that is the same in both batches if one is the passed-through form of the other.

    Attributes:
        records, length, codec: of the header.
        times: base and maximum timestamp; empty if the destination replaces timestamps.
        crc: CRC-32C of the bytes after the header.
        strong: SHA-256 of these bytes; empty unless requested.
    """

    records: int
    length: int
    codec: int
    times: tuple[int, ...]
    crc: int
    strong: bytes = b""


class Seen(NamedTuple):
    """A batch's fingerprint, and whether its bytes match the checksum in its header."""

    fingerprint: Fingerprint
    intact: bool


def fingerprint(batch: Batch, *, timed: bool = True, strong: bool = False) -> Seen:
    """Return the fingerprint of a batch of magic 2. ``timed``: timestamps are part of it."""
    view = batch.view
    records = view[HEADER_BYTES:]
    crc = crc32c(records)
    claimed = changed(batch.crc, b"", view[CRC_FROM:HEADER_BYTES], len(records))
    found = Fingerprint(
        batch.records,
        batch.length,
        batch.attributes & (CODEC_MASK | (LOG_APPEND_TIME if timed else 0)),
        (batch.base_timestamp, batch.max_timestamp) if timed else (),
        crc,
        sha256(records).digest() if strong else b"",
    )
    return Seen(found, crc == claimed)


class Digests(NamedTuple):
    """Offset and digest of each record, in order."""

    offsets: Array
    digests: Array

    def __len__(self) -> int:
        return len(self.offsets)


def no_digests(*, strong: bool) -> Digests:
    """Return the digests of no record."""
    return Digests(np.zeros(0, np.int64), np.zeros(0, _STRONG if strong else np.uint64))


def record_digests(batch: Batch, *, timed: bool = True, strong: bool = False) -> Digests:
    """Return the digests of all records of a batch. ``timed``: timestamps are part of them.

    Raises:
        CorruptBatch: its records cannot be read.
    """
    if batch.magic < 2:
        return _of_records(read_legacy(batch.view), timed=timed, strong=strong)
    if digested is None or not batch.records:
        return _of_records(read_records(batch), timed=timed, strong=strong)
    data = decompress(batch.view[HEADER_BYTES:], batch.attributes & CODEC_MASK)
    if batch.records > len(data):  # a record takes several bytes; so a damaged count takes no memory
        raise CorruptBatch(f"batch at offset {batch.base_offset}: {batch.records} records in {len(data)} bytes")
    fixed = bool(batch.attributes & LOG_APPEND_TIME)
    found = digested(data, batch.records, batch.base_timestamp, batch.max_timestamp, timed, fixed)
    if found is None:
        raise CorruptBatch(f"batch at offset {batch.base_offset}: a record cannot be read")
    offsets = np.frombuffer(found[0], np.int64) + batch.base_offset
    if offsets[-1] >= batch.next_offset:
        raise CorruptBatch(f"batch at offset {batch.base_offset}: a record has offset {offsets[-1]}")
    if not strong:
        return Digests(offsets, np.frombuffer(found[1], np.uint64))
    times, starts, ends = (np.frombuffer(column, np.int64) for column in found[2:])
    contents = (
        (time_ms if timed else 0, data[start:end])
        for time_ms, start, end in zip(times.tolist(), starts.tolist(), ends.tolist(), strict=True)
    )
    return Digests(offsets, _strong(contents))


def _of_records(records: Iterable[Record], *, timed: bool, strong: bool) -> Digests:
    records = list(records)
    contents = [
        (record.timestamp_ms if timed else 0, encode_content(record.key, record.value, record.headers))
        for record in records
    ]
    offsets = np.fromiter((record.offset for record in records), np.int64, len(records))
    if strong:
        return Digests(offsets, _strong(contents))
    found = (hashed(content, _fold((time_ms & _MASK) ^ _OF_TIME[0], _OF_TIME[1])) for time_ms, content in contents)
    return Digests(offsets, np.fromiter(found, np.uint64, len(records)))


def _strong(contents: Iterable[tuple[int, bytes | memoryview]]) -> Array:
    found = bytearray()
    for time_ms, content in contents:
        digest = sha256(_TIME.pack(wrapped(time_ms)))
        digest.update(content)
        found += digest.digest()
    return np.frombuffer(found, _STRONG)


def hashed(data: bytes, state: int) -> int:
    """Return 64 bits that depend on all of the data and on ``state``: multiplied and folded, 16 bytes at a time."""
    state ^= _fold(len(data) ^ _ONE, _OTHER)
    whole = len(data) & ~15
    for at in range(0, whole, 16):
        state = _fold(_number(data, at) ^ _ONE, _number(data, at + 8) ^ state)
    if whole < len(data):
        state = _fold(_number(data, whole) ^ _OTHER, _number(data, whole + 8) ^ state)
    return state


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _fold(one: int, other: int) -> int:
    product = one * other
    return (product ^ product >> 64) & _MASK
