"""Message sets of magic 0 and 1 against other clients' encoders."""

import zlib
from typing import Any

import cramjam
import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from strait.errors import CorruptBatch
from strait.wire.batch import split_batches
from strait.wire.legacy import _with_right_checksum, _xxh32_of_few, read_legacy
from strait.wire.records import Record

BASE_MS = 1_600_000_000_000
GZIP, SNAPPY, LZ4 = 1, 2, 3

contents = st.one_of(st.none(), st.just(b""), st.binary(max_size=40))
some_records = st.lists(st.tuples(st.integers(-1, 2**63 - 1), contents, contents), min_size=1, max_size=20).map(
    lambda each: [Record(number, *fields, ()) for number, fields in enumerate(each)]
)


def message(
    offset: int, magic: int, attributes: int, timestamp_ms: int, key: bytes | None, value: bytes | None
) -> bytes:
    """One entry, written by the format's definition."""
    body = bytes((magic, attributes)) + (timestamp_ms.to_bytes(8, "big", signed=True) if magic else b"")
    for content in (key, value):
        body += b"\xff\xff\xff\xff" if content is None else len(content).to_bytes(4, "big") + content
    body = zlib.crc32(body).to_bytes(4, "big") + body
    return offset.to_bytes(8, "big", signed=True) + len(body).to_bytes(4, "big") + body


def built(records: list[Record], magic: int, codec: int) -> bytearray:
    """As a client of that time sends it, from aiokafka."""
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 30)
    for number, record in enumerate(records):
        builder.append(number, record.timestamp_ms, record.key, record.value)
    return bytearray(builder.build())


def without_times(records: list[Record]) -> list[Record]:
    return [record._replace(timestamp_ms=-1) for record in records]


@given(some_records, st.integers(0, 1), st.sampled_from([0, GZIP, SNAPPY, LZ4]))
@settings(deadline=None)
def test_records_come_back_as_another_client_wrote_them(records: list[Record], magic: int, codec: int) -> None:
    if magic == 0 and codec == LZ4:
        return  # that client refuses to: see below
    raw = built(records, magic, codec)
    if codec:  # a broker gives the wrapper the offset of its last message
        raw[0:8] = (len(records) - 1).to_bytes(8, "big")
    assert read_legacy(memoryview(raw)) == (records if magic else without_times(records))


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_offsets_inside_a_wrapper_count_back_from_its_own(codec: int) -> None:
    raw = built([Record(n, BASE_MS + n, b"k", b"v", ()) for n in range(5)], 1, codec)
    raw[0:8] = (2**40).to_bytes(8, "big")
    assert [record.offset - 2**40 for record in read_legacy(memoryview(raw))] == [-4, -3, -2, -1, 0]


def test_offsets_inside_a_wrapper_keep_the_holes_of_compaction() -> None:
    inner = b"".join(message(offset, 1, 0, BASE_MS, None, b"v") for offset in (0, 3, 7))
    raw = message(1007, 1, GZIP, BASE_MS, None, zlib.compress(inner, wbits=31))
    assert [record.offset for record in read_legacy(memoryview(raw))] == [1000, 1003, 1007]


def test_the_first_format_has_offsets_of_its_own_inside() -> None:
    inner = b"".join(message(offset, 0, 0, 0, b"k", None) for offset in (50, 51, 60))
    raw = message(60, 0, GZIP, 0, None, zlib.compress(inner, wbits=31))
    assert read_legacy(memoryview(raw)) == [Record(offset, -1, b"k", None, ()) for offset in (50, 51, 60)]


def test_readers_see_the_append_time_of_the_broker() -> None:
    inner = b"".join(message(offset, 1, 0, BASE_MS, None, b"v") for offset in (0, 1))
    for attributes, seen in ((GZIP, BASE_MS), (GZIP | 8, BASE_MS + 77)):
        raw = message(1, 1, attributes, BASE_MS + 77, None, zlib.compress(inner, wbits=31))
        assert [record.timestamp_ms for record in read_legacy(memoryview(raw))] == [seen, seen]
    alone = message(1, 1, 8, BASE_MS + 77, None, b"v")
    assert read_legacy(memoryview(alone))[0].timestamp_ms == BASE_MS + 77


@pytest.mark.parametrize("checksum", [None, 0x82, 0])
@pytest.mark.parametrize("content_size", [False, True])
def test_lz4_of_the_first_format_is_read_with_its_wrong_checksum(checksum: int | None, content_size: bool) -> None:
    """KAFKA-3160. 0x82 is what those clients wrote for the usual flags, as kafka-python knows."""
    inner = b"".join(message(offset, 0, 0, 0, b"k", b"v" * 5000) for offset in (5, 6))
    compressor = cramjam.lz4.Compressor(level=1, content_checksum=False, block_linked=False)
    compressor.compress(inner)
    frame = bytearray(bytes(compressor.finish()))
    if content_size:
        frame[4] |= 8
        frame[6:7] = len(inner).to_bytes(8, "little") + b"\0"
    if checksum is not None:
        frame[14 if content_size else 6] = checksum
    raw = message(6, 0, LZ4, 0, None, bytes(frame))
    assert read_legacy(memoryview(raw)) == [Record(offset, -1, b"k", b"v" * 5000, ()) for offset in (5, 6)]


def test_the_checksum_of_a_frames_header_is_computed_as_the_library_does() -> None:
    for linked in (True, False):
        for checked in (True, False):
            compressor = cramjam.lz4.Compressor(level=1, content_checksum=checked, block_linked=linked)
            compressor.compress(b"something")
            frame = bytes(compressor.finish())
            assert bytes(_with_right_checksum(memoryview(frame))) == frame
    assert _xxh32_of_few(b"") == 0x02CC5D05  # from the definition's own test vectors
    assert _xxh32_of_few(b"a") == 0x550D7456


def test_a_set_of_many_entries_as_the_fetch_reply_has_it() -> None:
    entries = [message(n, n % 2, 0, BASE_MS, b"%d" % n, b"v") for n in range(6)]
    raw = memoryview(bytearray(b"".join(entries)))
    whole = read_legacy(raw)
    assert [record.offset for record in whole] == list(range(6))
    assert [record for batch in split_batches(raw) for record in read_legacy(batch.view)] == whole


def wrapped(inner: bytes, codec: int = GZIP, magic: int = 1) -> bytes:
    return message(9, magic, codec, BASE_MS, None, zlib.compress(inner, wbits=31))


GOOD = message(1, 1, 0, BASE_MS, b"k", b"v")
MALFORMED: dict[str, Any] = {
    "a cut entry": GOOD[:-1],
    "a cut head": GOOD[:9],
    "no room for a message": b"\0" * 12,
    "a length below zero": GOOD[:8] + b"\xff\xff\xff\xf0" + GOOD[12:],
    "offsets that fall": message(2, 1, 0, 0, None, None) + GOOD,
    "a null wrapper": message(1, 1, GZIP, 0, None, None),
    "nothing wrapped": wrapped(b""),
    "wrapped twice": wrapped(wrapped(GOOD)),
    "another format inside": wrapped(GOOD, magic=0),
    "another codec": wrapped(GOOD, codec=SNAPPY),
    "a codec of later": wrapped(GOOD, codec=4),
    "a codec of nobody": wrapped(GOOD, codec=7),
    "lz4 of nothing": message(1, 0, LZ4, 0, None, b""),
    "a changed byte": GOOD[:-1] + b"w",
    "a changed byte inside": wrapped(GOOD[:-1] + b"w"),
    "more inside": wrapped(GOOD + b"\0"),
    "magic 2": message(1, 2, 0, 0, b"k", b"v"),
}


@pytest.mark.parametrize("raw", [pytest.param(raw, id=name) for name, raw in MALFORMED.items()])
def test_what_is_malformed_is_corrupt(raw: bytes) -> None:
    with pytest.raises(CorruptBatch):
        read_legacy(memoryview(raw))
