"""RecordBatch, magic 2 (KIP-98). A batch is the unit of work: restamped in place, never decompressed.

Layout before the records, 61 bytes:
    base_offset i64 | length i32 | leader_epoch i32 | magic i8 | crc u32 | attributes i16 | last_offset_delta i32 |
    base_timestamp i64 | max_timestamp i64 | producer_id i64 | producer_epoch i16 | base_sequence i32 | records i32
The CRC-32C covers everything from ``attributes`` on. So base offset and leader epoch can change freely; the effect of
any other header change on it is computed without the records (``strait.wire.crc``).

A batch that is passed through is not checked here but by the destination's broker, which checks each batch that it
appends: the checksum is the producer's, adjusted, so it detects corruption end to end. Code that drops, skips or takes
apart a batch must ``check`` it first.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from strait.errors import CorruptBatch
from strait.wire.crc import changed

HEADER_BYTES = 61
CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40  # the base timestamp then holds a deletion time (KIP-534); deltas stay relative to it

HEADER_CODES = "qiibIhiqqqhii"
"""Type codes of ``struct`` for the fields of a header, in the order of ``Batch``."""

_HEADER = Struct(f">{HEADER_CODES}")
PREFIX_BYTES = 12  # base offset and length, which the length does not include
_MAGIC_AT = 16
_CRC_AT = 17
CRC_FROM = 21
CRC_BYTES = slice(_CRC_AT, CRC_FROM)
"""The checksum in a header."""
_BASE = Struct(">qii")
LENGTH = Struct(">8xi")
"""The length field, unpacked from the start of a batch: its number of bytes after the first ``PREFIX_BYTES``."""
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_PRODUCER = Struct(">qhi")
_PRODUCER_AT = 43
_CHANGED_TO = 57  # after the sequence
_EVERYTHING = 1 << 63
_FRONT = Struct(">qiibI")  # all fields that the checksum does not cover, and the checksum itself


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
    def whole(self) -> bool:
        """Whether it has a record at each of its offsets. Brokers accept no others, and sequences count records."""
        return self.records == self.last_offset_delta + 1

    @property
    def crc_bytes(self) -> bytes:
        """The checksum in its header, as stored there."""
        return _CRC.pack(self.crc)

    @property
    def next_offset(self) -> int:
        """The offset after the last one that this batch spans."""
        return self.base_offset + self.last_offset_delta + 1


def split_batches(records: memoryview, *, checked_to: int = _EVERYTHING) -> Iterator[Batch]:
    """Yield each whole batch of one partition's fetched records, as a view (no copy). The checksum is verified of those
    that start before offset ``checked_to``.

    A broker may cut the last batch to fit the fetch size; that tail is dropped, since the next fetch starts at its base
    offset and returns it whole. Old formats (magic 0 and 1) are yielded with their magic and no other reliable field.

    Raises:
        CorruptBatch: a length or magic is invalid, or the checksum does not match.
    """
    at, end = 0, len(records)
    while end - at > _MAGIC_AT:
        base_offset, length, _ = _BASE.unpack_from(records, at)
        magic = records[at + _MAGIC_AT]
        behind = at + PREFIX_BYTES + length
        if magic > 2 or length < (HEADER_BYTES - PREFIX_BYTES if magic == 2 else 14):
            raise CorruptBatch(f"batch at offset {base_offset}: length {length}, magic {magic} cannot be right")
        if behind > end:
            return
        view = records[at:behind]
        if magic < 2:
            yield Batch(base_offset, length, -1, magic, 0, 0, 0, -1, -1, -1, -1, -1, 0, view)
        else:
            batch = parse(view)
            if base_offset < checked_to:
                check(batch)
            yield batch
        at = behind


def check(batch: Batch) -> None:
    """Raise CorruptBatch if a batch of magic 2 has a checksum that does not match its bytes."""
    if batch.magic == 2 and crc32c(batch.view[CRC_FROM:]) != batch.crc:
        raise CorruptBatch(f"batch at offset {batch.base_offset}: the checksum does not match its {batch.length} bytes")


def parse(view: memoryview) -> Batch:
    """Return one whole batch of magic 2 from its bytes; nothing is checked."""
    return Batch._make((*_HEADER.unpack_from(view), view))


def make_header(
    data_bytes: int, attributes: int, base_ms: int, max_ms: int, records: int, *, base_offset: int = 0
) -> bytes:
    """Return the header of a batch without a producer, with records at consecutive offsets that take ``data_bytes``
    after it. Its checksum is not set yet (`seal`)."""
    length = HEADER_BYTES - PREFIX_BYTES + data_bytes
    return _HEADER.pack(base_offset, length, -1, 2, 0, attributes, records - 1, base_ms, max_ms, -1, -1, -1, records)


def seal(batch: bytearray | memoryview) -> None:
    """Write the checksum of the batch into its header."""
    _CRC.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[CRC_FROM:]))


def checksum(batch: memoryview) -> int:
    """Return the CRC-32C in its header. With the same producer and sequence it is the same for the same records, on the
    broker too: it does not cover the fields that a broker changes, base offset and leader epoch."""
    return int(_CRC.unpack_from(batch, _CRC_AT)[0])


def restamp(batch: Batch, producer_id: int, wire_sequence: int) -> int:
    """Make the batch the link's own, in place: base offset 0, no leader epoch, not transactional, our producer ID and
    sequence. The checksum is adjusted, so it matches only if it did before; it is returned."""
    view = batch.view
    covered = view[CRC_FROM:_CHANGED_TO]
    before = bytes(covered)
    attributes = batch.attributes & ~(DELETE_HORIZON | TRANSACTIONAL)
    _ATTRIBUTES.pack_into(view, CRC_FROM, attributes)
    _PRODUCER.pack_into(view, _PRODUCER_AT, producer_id, 0, wire_sequence)
    crc = changed(batch.crc, before, covered, len(view) - _CHANGED_TO)
    _FRONT.pack_into(view, 0, 0, batch.length, -1, 2, crc)
    return crc
