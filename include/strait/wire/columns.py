"""Records as columns, for topics whose records are transformed: decoded from batches, and encoded into new ones. Pure.

The work is done in machine code (``strait.wire.columnar``), at a tenth of the cost of single records; if that was not
compiled when Strait was installed, record by record here.

Bytes are laid out as in Apache Arrow: those of all rows one after the other, and the start of each row. Headers keep
their form in a batch, a count and pairs, so they pass unchanged.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from strait.errors import CorruptBatch
from strait.wire.batch import CODEC_MASK, CONTROL, HEADER_BYTES, LOG_APPEND_TIME, Batch, check, make_header, seal
from strait.wire.compression import compress, decompress
from strait.wire.record_bytes import encode_content, read_fields, varint, wrapped

try:
    from strait.wire import columnar
except ImportError:
    columnar = None  # type: ignore[assignment]

Array = np.ndarray[Any, np.dtype[Any]]

MOST_BYTES = 1 << 31
"""Fewer bytes than this fit into a column."""
NO_HEADERS = b"\0"
_NOTHING = encode_content(None, None, ())[:2]  # before the headers of a record with neither key nor value


class Column(NamedTuple):
    """The bytes of each row.

    Attributes:
        data: uint8, at least one element.
        starts: int32, one more than rows: row r's bytes are ``data[starts[r]:starts[r + 1]]``.
        valid: uint8 of each row; 0: the row has no bytes, not even none. At least one element.
    """

    data: Array
    starts: Array
    valid: Array

    def at(self, row: int) -> bytes | None:
        """Return the bytes of a row."""
        return self.data[self.starts[row] : self.starts[row + 1]].tobytes() if self.valid[row] else None


class Columns(NamedTuple):
    """Records: ``times`` in ms since 1970, int64."""

    times: Array
    keys: Column
    values: Column
    headers: Column

    def __len__(self) -> int:
        return len(self.headers.starts) - 1


class Opened(NamedTuple):
    """A batch with a valid checksum, and its records decompressed."""

    batch: Batch
    data: memoryview


def opened(batch: Batch) -> Opened:
    """Decompress a batch of magic 2 whose records are at consecutive offsets and have their producer's timestamps.

    Raises:
        CorruptBatch: the checksum, the codec or the size is invalid.
    """
    if not batch.whole or batch.attributes & (CONTROL | LOG_APPEND_TIME) or not batch.records:
        raise ValueError(f"the batch at offset {batch.base_offset} must be rebuilt first")
    check(batch)
    try:
        data = decompress(batch.view[HEADER_BYTES:], batch.attributes & CODEC_MASK)
    except CorruptBatch as error:
        raise CorruptBatch(f"batch at offset {batch.base_offset}: {error.message}") from error
    if batch.records > len(data):  # a record takes several bytes; so a damaged count takes no memory
        raise CorruptBatch(f"batch at offset {batch.base_offset}: {batch.records} records in {len(data)} bytes")
    return Opened(batch, data)


def decode(found: Sequence[Opened]) -> Columns:
    """Return the records of batches, which together have fewer than `MOST_BYTES`, one batch after the other.

    Raises:
        CorruptBatch: a record is not as it must be.
    """
    records, size = sum(one.batch.records for one in found), sum(len(one.data) for one in found)
    if size >= MOST_BYTES:
        raise ValueError(f"{size} bytes do not fit into a column")
    if columnar is None:
        return _decode_slowly(found)
    times = np.empty(records, np.int64)
    columns: list[list[Array]] = [
        [np.empty(size, np.uint8), np.zeros(records + 1, np.int32), np.ones(records, np.uint8)] for _ in "kvh"
    ]
    row = 0
    for batch, data in found:
        row = columnar.decoded(data, batch.records, batch.base_timestamp, row, times, *columns)
        if row < 0:
            raise CorruptBatch(f"batch at offset {batch.base_offset}: a record cannot be read")
    keys, values, headers = (Column(*arrays) for arrays in columns)
    return Columns(times, keys, values, headers)


def encode(rows: Columns, first: int, behind: int, codec: int) -> bytearray:
    """Return one batch of the rows from ``first`` to before ``behind``, at least one: offsets from 0, no producer."""
    if columnar is None:
        built = bytearray(HEADER_BYTES) + _encode_slowly(rows, first, behind)
    else:
        columns = (list(column) for column in (rows.keys, rows.values, rows.headers))
        built = columnar.encoded(first, behind, HEADER_BYTES, rows.times, *columns)
    data: bytes | bytearray | memoryview = memoryview(built)[HEADER_BYTES:]
    if codec:
        packed = compress(data, codec)
        built = bytearray(HEADER_BYTES + len(packed))
        built[HEADER_BYTES:] = data = packed
    times = rows.times[first:behind]
    header = make_header(len(data), codec, int(times[0]), int(times.max()), behind - first)
    memoryview(built)[:HEADER_BYTES] = header
    seal(built)
    return built


def without_headers(count: int) -> Column:
    """Return the headers of this number of records, all without headers."""
    return Column(
        np.zeros(max(1, count), np.uint8), np.arange(count + 1, dtype=np.int32), np.ones(max(1, count), np.uint8)
    )


def cuts(rows: Columns, most_bytes: int) -> list[int]:
    """Return the places at which to cut the rows, first and last included, so that no batch of them has more than ``most_bytes``
    before compression, unless it is one row."""
    sizes = sum(np.diff(column.starts.astype(np.int64)) for column in (rows.keys, rows.values, rows.headers))
    ends = np.cumsum(sizes + _RECORD_BYTES)
    places = [0]
    while places[-1] < len(rows):
        before = int(ends[places[-1] - 1]) if places[-1] else 0
        fits = int(np.searchsorted(ends, before + most_bytes - HEADER_BYTES, side="right"))
        places.append(max(places[-1] + 1, fits))
    return places


_RECORD_BYTES = 40
"""More than a record's lengths, timestamp and offset take."""


def _decode_slowly(found: Sequence[Opened]) -> Columns:
    times: list[int] = []
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    headers: list[bytes | None] = []
    for batch, data in found:
        for number, (offset, delta, key, value, pairs) in enumerate(read_fields(bytes(data), batch.records)):
            if offset != number:
                raise CorruptBatch(f"batch at offset {batch.base_offset}: a record has offset {offset}")
            times.append(wrapped(batch.base_timestamp + delta))
            keys.append(key)
            values.append(value)
            headers.append(encode_content(None, None, pairs)[len(_NOTHING) :])
    return Columns(np.array(times, np.int64), column(keys), column(values), column(headers))


def column(contents: Sequence[bytes | None]) -> Column:
    """Return a column of these contents."""
    starts = np.zeros(len(contents) + 1, np.int32)
    np.cumsum([len(content or b"") for content in contents], out=starts[1:])
    data = np.frombuffer(b"".join(content or b"" for content in contents) or b"\0", np.uint8)
    valid = np.array([content is not None for content in contents] or [True], np.uint8)
    return Column(data, starts, valid)


def part_of(rows: Columns, first: int, behind: int) -> Columns:
    """Return the rows from ``first`` to before ``behind``, at least one; nothing is copied."""
    parts = (Column(one.data, one.starts[first : behind + 1], one.valid[first:behind]) for one in rows[1:])
    return Columns(rows.times[first:behind], *parts)


def _encode_slowly(rows: Columns, first: int, behind: int) -> bytes:
    out = bytearray()
    for row in range(first, behind):
        front = b"\0" + varint(wrapped(int(rows.times[row]) - int(rows.times[first]))) + varint(row - first)
        content = encode_content(rows.keys.at(row), rows.values.at(row), ())[:-1]
        body = front + content + (rows.headers.at(row) or NO_HEADERS)
        out += varint(len(body)) + body
    return bytes(out)
