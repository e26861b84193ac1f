"""Single records: decoded from a batch of magic 2, and encoded into new batches.

Only batches that cannot be passed through are handled here: the cost is per record, a hundred times that of passing
through. The work is done by aiokafka's compiled codec. It checks for the end of the bytes only after it has read a
number, so the bytes are padded with zeros, which end any number; its errors, and invalid data that it accepts, are
handled here.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter, ge
from typing import NamedTuple

from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from strait.errors import CorruptBatch
from strait.wire.batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    Batch,
    make_header,
    parse,
    seal,
)
from strait.wire.compression import compress, decompress
from strait.wire.record_bytes import Headers, encode_fields, read_fields, wrapped

_NO_TIMESTAMP = -1
_NO_LIMIT = 1 << 62
_PADDING = bytes(16)


class Record(NamedTuple):
    """A record as a consumer sees it, except for header keys: bytes that are not UTF-8 are lone surrogates (PEP 383).

    ``timestamp_ms`` is -1 if the record has none.
    """

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


_fields = attrgetter("offset", "timestamp", "key", "value", "headers")
_record = partial(tuple.__new__, Record)


def read_records(batch: Batch) -> list[Record]:
    """Return every record of a batch of magic 2 with a valid checksum, with its source offset and the timestamp that
    readers see.

    Not for control batches. If compaction stored a deletion time as the base timestamp (KIP-534), the deltas are
    relative to that, so nothing differs.

    Raises:
        CorruptBatch: codec, lengths, counts or offsets are invalid, or it holds more than ``compression.MAX_BYTES``.
    """
    return [record for piece in read_in_pieces(batch, _NO_LIMIT) for record in piece]


def read_in_pieces(batch: Batch, records: int) -> Iterator[list[Record]]:
    """Yield the same, at most ``records`` at a time: a record takes some 200 bytes in memory, and a few bytes in its
    batch."""
    try:
        data = batch.view[HEADER_BYTES:]
        if batch.records == 0 and not data:
            return  # compaction left the header, which keeps a producer's sequence
        if batch.records <= 0:
            raise CorruptBatch(f"{len(data)} bytes for {batch.records} records")
        data = decompress(data, batch.attributes & CODEC_MASK)
        before, read = batch.base_offset - 1, 0
        found = _read(batch, data)
        while True:
            try:
                piece = list(islice(found, records))
            except UnicodeDecodeError:  # a header key
                found = islice(_read_slowly(batch, data), read, None)
                continue
            if not piece:
                return
            _check_offsets(batch, piece, before)
            before, read = piece[-1].offset, read + len(piece)
            yield piece
    except CorruptBatch as error:
        raise CorruptBatch(f"batch at offset {batch.base_offset}: {error.message}") from error


def build_batch(records: Sequence[Record], codec: int) -> bytearray:
    """Return one batch of these records, at least one, in their order: offsets from 0, their own timestamps, no
    producer."""
    if not records:
        raise ValueError("a batch needs a record")
    try:
        plain = _encode_slowly(records) if _begins_without_time(records) else _encode(records)
    except UnicodeEncodeError:  # a header key
        plain = _encode_slowly(records)
    return compressed(plain, codec) if codec else plain


def compressed(plain: bytearray, codec: int) -> bytearray:
    """Return an uncompressed batch compressed with ``codec``."""
    batch = parse(memoryview(plain))
    data = compress(batch.view[HEADER_BYTES:], codec)
    return _sealed(batch.records, batch.base_timestamp, batch.max_timestamp, data, codec)


def split_into(records: Sequence[Record], codec: int, max_bytes: int) -> list[bytearray]:
    """Return the records in their order as nearly the fewest batches of at most ``max_bytes``, compressed and with
    their headers.

    A record that does not fit alone makes a batch that is too large; the caller must compare.
    """
    whole = build_batch(records, codec)
    if len(whole) <= max_bytes or len(records) == 1:
        return [whole]
    parts = min(len(records), -(-len(whole) // max(1, max_bytes)))
    each = -(-len(records) // parts)
    return [
        batch
        for start in range(0, len(records), each)
        for batch in split_into(records[start : start + each], codec, max_bytes)
    ]


def _read(batch: Batch, data: memoryview) -> Iterator[Record]:
    attributes = batch.attributes & LOG_APPEND_TIME
    times = batch.base_timestamp, batch.max_timestamp
    header = make_header(len(data), attributes, *times, batch.records, base_offset=batch.base_offset)
    try:
        for offset, timestamp_ms, key, value, headers in map(_fields, DefaultRecordBatch(_padded(header, data))):
            yield _record((offset, timestamp_ms, key, value, tuple(headers) if headers else ()))
    except (CorruptRecordException, OverflowError, MemoryError) as error:  # the last two: a length near 2**63
        raise CorruptBatch(str(error) or "a length cannot be right") from error


def _padded(*pieces: bytes | memoryview) -> memoryview:
    """Return the pieces of an uncompressed batch, padded so that the compiled codec may read them."""
    return memoryview(b"".join((*pieces, _PADDING)))[: -len(_PADDING)]


def _read_slowly(batch: Batch, data: memoryview) -> Iterator[Record]:
    append_time = batch.attributes & LOG_APPEND_TIME
    for offset_delta, timestamp_delta, key, value, headers in read_fields(bytes(data), batch.records):
        timestamp_ms = batch.max_timestamp if append_time else wrapped(batch.base_timestamp + timestamp_delta)
        yield Record(batch.base_offset + offset_delta, timestamp_ms, key, value, headers)


def _check_offsets(batch: Batch, records: list[Record], before: int) -> None:
    offsets = [record[0] for record in records]
    if offsets[0] <= before or offsets[-1] >= batch.next_offset or any(map(ge, offsets, islice(offsets, 1, None))):
        raise CorruptBatch(f"its records' offsets do not rise from {batch.base_offset} to {batch.next_offset - 1}")


def _begins_without_time(records: Sequence[Record]) -> bool:
    """Return whether the compiled builder would mistake a later timestamp for the base: it marks by -1 that it has none
    yet."""
    return records[0].timestamp_ms == _NO_TIMESTAMP and any(record.timestamp_ms != _NO_TIMESTAMP for record in records)


def _encode(records: Sequence[Record]) -> bytearray:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, _NO_LIMIT)
    append = builder.append
    for delta, (_, timestamp_ms, key, value, headers) in enumerate(records):
        append(delta, timestamp_ms, key, value, list(headers))
    built: bytearray = builder.build()
    return built


def _encode_slowly(records: Sequence[Record]) -> bytearray:
    base_ms = records[0].timestamp_ms
    data = encode_fields(
        [
            (delta, wrapped(record.timestamp_ms - base_ms), record.key, record.value, record.headers)
            for delta, record in enumerate(records)
        ]
    )
    return _sealed(len(records), base_ms, max(record.timestamp_ms for record in records), data, 0)


def _sealed(count: int, base_ms: int, max_ms: int, data: bytes | bytearray | memoryview, codec: int) -> bytearray:
    """Return header and records, with the checksum set."""
    built = bytearray(make_header(len(data), codec, base_ms, max_ms, count))
    built += data
    seal(built)
    return built
