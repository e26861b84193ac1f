"""RecordBatch, magic 2 (KIP-98). A batch is the unit of work: restamped in place, never decompressed.

Layout before the records, 61 bytes:
    base_offset i64 | length i32 | leader_epoch i32 | magic i8 | crc u32 | attributes i16 | last_offset_delta i32 |
    base_timestamp i64 | max_timestamp i64 | producer_id i64 | producer_epoch i16 | base_sequence i32 | records i32
The CRC-32C covers everything from ``attributes`` on, so base offset and leader epoch change freely, and the rest of what
is changed costs one pass over the bytes.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from strait.errors import CorruptBatch
from strait.reasons import Reason

HEADER_BYTES = 61
CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40  # the base timestamp then holds a deletion time (KIP-534); deltas stay relative to it

_HEADER = Struct(">qiibIhiqqqhii")
_PREFIX_BYTES = 12  # base offset and length, which the length does not count
_MAGIC_AT = 16
_CRC_AT = 17
_CRC_FROM = 21
_BASE = Struct(">qii")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_PRODUCER = Struct(">qhi")
_PRODUCER_AT = 43


class Batch(NamedTuple):
    """One whole batch: its header's fields and a view of all its bytes, header included."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int
    view: memoryview

    @property
    def next_offset(self) -> int:
        """The offset behind the last one that this batch spans."""
        return self.base_offset + self.last_offset_delta + 1


def split_batches(records: memoryview) -> Iterator[Batch]:
    """Yield each whole batch of one partition's fetched records, as a view (no copy).

    A broker may cut the last batch to fit the fetch size; that tail is dropped, since the next fetch starts at its base
    offset and returns it whole. Old formats (magic 0 and 1) are yielded with their magic and no other field to rely on.

    Raises:
        CorruptBatch: a length or magic cannot be right, or the checksum does not match.
    """
    at, end = 0, len(records)
    while end - at > _MAGIC_AT:
        base_offset, length, _ = _BASE.unpack_from(records, at)
        magic = records[at + _MAGIC_AT]
        behind = at + _PREFIX_BYTES + length
        if magic > 2 or length < (HEADER_BYTES - _PREFIX_BYTES if magic == 2 else 14):
            raise CorruptBatch(f"batch at offset {base_offset}: length {length}, magic {magic} cannot be right")
        if behind > end:
            return
        view = records[at:behind]
        if magic < 2:
            yield Batch(base_offset, length, -1, magic, 0, 0, 0, -1, -1, -1, -1, -1, 0, view)
        else:
            batch = Batch._make((*_HEADER.unpack_from(view), view))
            if crc32c(view[_CRC_FROM:]) != batch.crc:
                raise CorruptBatch(f"batch at offset {base_offset}: the checksum does not match its {length} bytes")
            yield batch
        at = behind


def refusal(batch: Batch, position: int) -> tuple[Reason, str] | None:
    """Why this batch cannot be passed as it is when the next source offset to copy is ``position``; None if it can.

    Passing needs a plain batch that starts where the last one ended and has a record at each of its offsets: a broker
    rejects a batch whose count differs from its span, and sequences count records.
    """
    if batch.magic != 2:
        return Reason.OLD_MESSAGE_FORMAT, f"offset {batch.base_offset} is in message format v{batch.magic}"
    if batch.attributes & (TRANSACTIONAL | CONTROL):
        kind = "a transaction marker" if batch.attributes & CONTROL else "a transactional batch"
        return Reason.TRANSACTIONAL_SOURCE, f"offset {batch.base_offset} is {kind}"
    if batch.base_offset > position:
        return Reason.OFFSET_GAP, f"offsets {position} to {batch.base_offset - 1} hold no records"
    if batch.base_offset < position:
        return (
            Reason.START_INSIDE_BATCH,
            f"offset {position} lies inside the batch of {batch.base_offset} to {batch.next_offset - 1}",
        )
    if batch.records != batch.last_offset_delta + 1:
        missing = batch.last_offset_delta + 1 - batch.records
        return Reason.BATCH_WITH_HOLES, f"batch at offset {batch.base_offset} lacks {missing} of its records"
    if batch.attributes & LOG_APPEND_TIME:
        return Reason.LOG_APPEND_TIME, f"batch at offset {batch.base_offset} has its time from the source broker"
    return None


def restamp(batch: Batch, producer_id: int, wire_sequence: int) -> None:
    """Make the batch the link's own, in place: base offset 0, no leader epoch, our producer id and sequence, new CRC."""
    view = batch.view
    _BASE.pack_into(view, 0, 0, batch.length, -1)
    if batch.attributes & DELETE_HORIZON:
        _ATTRIBUTES.pack_into(view, _CRC_FROM, batch.attributes & ~DELETE_HORIZON)
    _PRODUCER.pack_into(view, _PRODUCER_AT, producer_id, 0, wire_sequence)
    _CRC.pack_into(view, _CRC_AT, crc32c(view[_CRC_FROM:]))
