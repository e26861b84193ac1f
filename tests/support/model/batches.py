"""Batches as a source's broker serves them, made of what a test wants to be in them."""

import struct
from collections.abc import Sequence

from crc32c import crc32c

from strait.wire.batch import CONTROL, TRANSACTIONAL
from strait.wire.compression import compress
from strait.wire.record_bytes import encode_fields
from strait.wire.records import Record

_HEADER = struct.Struct(">qiibIhiqqqhii")
_PREFIX_BYTES = 12
_CRC_AT = 17
_CRC_FROM = 21


def source_batch(
    records: Sequence[Record],
    first: int,
    behind: int,
    *,
    codec: int = 0,
    attributes: int = 0,
    producer_id: int = -1,
    leader_epoch: int = 7,
) -> bytearray:
    """A batch that spans the offsets [``first``, ``behind``), in which only these records are left."""
    times = [record.timestamp_ms for record in records] or [-1]
    data = encode_fields(
        [
            (record.offset - first, record.timestamp_ms - times[0], record.key, record.value, record.headers)
            for record in records
        ]
    )
    data = compress(memoryview(data), codec) if records else b""
    length = _HEADER.size - _PREFIX_BYTES + len(data)
    told = (attributes | codec, behind - first - 1, times[0], max(times), producer_id, 0, 0, len(records))
    raw = bytearray(_HEADER.pack(first, length, leader_epoch, 2, 0, *told))
    raw += data
    struct.pack_into(">I", raw, _CRC_AT, crc32c(bytes(raw[_CRC_FROM:])))
    return raw


def marker(offset: int, producer_id: int, *, commit: bool) -> bytearray:
    """The end of a transaction."""
    record = Record(offset, 1, struct.pack(">hh", 0, int(commit)), struct.pack(">hi", 0, 0), ())
    return source_batch([record], offset, offset + 1, attributes=CONTROL | TRANSACTIONAL, producer_id=producer_id)
