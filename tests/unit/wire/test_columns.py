"""Records as columns: the same as the library's own reader finds, and batches of them that it reads as they were."""

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strait.errors import CorruptBatch
from strait.wire import columns as subject
from strait.wire.batch import parse
from strait.wire.columns import Columns, Opened, cuts, decode, encode, opened
from strait.wire.compression import compress
from strait.wire.record_bytes import encode_content
from strait.wire.records import Record, build_batch, read_records
from unit.wire.test_records import BASE, parsed, sealed, some_records


def rows_of(found: Columns) -> list[tuple[int, bytes | None, bytes | None, bytes | None]]:
    rows = range(len(found))
    return [(int(found.times[row]), found.keys.at(row), found.values.at(row), found.headers.at(row)) for row in rows]


def expected(records: Sequence[Record]) -> list[tuple[int, bytes | None, bytes | None, bytes | None]]:
    return [(r.timestamp_ms, r.key, r.value, encode_content(None, None, r.headers)[2:]) for r in records]


def check_both_ways(batches: Sequence[Sequence[Record]], codec: int, low: float, high: float) -> None:
    found = decode([opened(parsed(build_batch(records, codec))) for records in batches])
    every = [record for records in batches for record in records]
    assert rows_of(found) == expected(every)
    first, behind = int(low * (len(every) - 1)), 1 + int(high * (len(every) - 1))
    first, behind = min(first, behind - 1), max(first + 1, behind)
    again = read_records(parsed(encode(found, first, behind, codec)))
    assert again == [record._replace(offset=number) for number, record in enumerate(every[first:behind])]


@given(st.lists(some_records, min_size=1, max_size=4), st.integers(0, 4), st.floats(0, 1), st.floats(0, 1))
@settings(deadline=None)
@pytest.mark.skipif(subject.columnar is None, reason="columnar was not compiled")
def test_records_go_into_columns_and_back(batches: list[list[Record]], codec: int, low: float, high: float) -> None:
    check_both_ways(batches, codec, low, high)


@given(st.lists(some_records, min_size=1, max_size=4), st.integers(0, 4))
@settings(deadline=None, max_examples=30)
def test_the_same_without_a_compiler(batches: list[list[Record]], codec: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subject, "columnar", None)
        check_both_ways(batches, codec, 0.3, 0.8)


def test_a_batch_encoded_by_columns_has_the_bytes_of_the_builder(way: None) -> None:
    rng = random.Random(5)
    records = [Record(n, BASE + rng.randrange(99), b"%d" % n, rng.randbytes(n), (("h", b"x"),)) for n in range(200)]
    built = build_batch(records, 0)
    assert encode(decode([opened(parsed(built))]), 0, 200, 0) == built


@given(st.data())
@settings(deadline=None, max_examples=300)
def test_damaged_records_are_refused_and_nothing_else_is_read(data: st.DataObject) -> None:
    """Any byte may be any other: the reader may find other records, but never more than there are bytes."""
    records = data.draw(some_records)
    batch = parsed(build_batch(records, 0))
    raw = bytearray(batch.view[61:])
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    damaged = Opened(batch, memoryview(raw))
    try:
        found = rows_of(decode([damaged]))
    except CorruptBatch:
        return
    assert len(found) == len(records)
    again = parsed(encode(decode([damaged]), 0, len(records), 0))
    assert rows_of(decode([opened(again)])) == found


@pytest.mark.parametrize("damage", [0, 1, 60])
def test_a_damaged_batch_is_not_opened(damage: int) -> None:
    raw = build_batch([Record(0, BASE, b"k", b"v" * 60, ())], 0)
    raw[61 + damage] ^= 1
    with pytest.raises(CorruptBatch, match="checksum"):
        opened(parse(memoryview(raw)))


def test_a_count_of_records_that_cannot_be_right_takes_no_memory() -> None:
    raw = sealed(build_batch([Record(0, BASE, b"k", b"v", ())], 0), records=1 << 30, last_offset_delta=(1 << 30) - 1)
    with pytest.raises(CorruptBatch, match="records in"):
        opened(parsed(raw))


def test_a_batch_that_does_not_decompress_is_not_opened() -> None:
    raw = build_batch([Record(0, BASE, b"k", b"v" * 99, ())], 4)
    raw[61:] = compress(b"\0" * 10, 3)
    with pytest.raises(CorruptBatch, match="offset 0"):
        opened(parsed(sealed(raw)))


def test_a_batch_with_holes_must_be_rebuilt_first() -> None:
    raw = sealed(build_batch([Record(0, BASE, b"k", b"v", ())], 0), last_offset_delta=1)
    with pytest.raises(ValueError, match="rebuilt"):
        opened(parsed(raw))


@given(some_records, st.integers(62, 400))
@settings(deadline=None)
def test_cuts_keep_batches_below_the_limit(records: list[Record], most: int) -> None:
    found = decode([opened(parsed(build_batch(records, 0)))])
    places = cuts(found, most)
    assert (places[0], places[-1]) == (0, len(records))
    for first, behind in pairwise(places):
        assert behind > first
        assert behind - first == 1 or len(encode(found, first, behind, 0)) <= most
