"""Records out of batches and into new ones, against what went in and against other clients' readers."""

import random
from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords as AnyCodec
from crc32c import crc32c
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kafka.record.memory_records import MemoryRecords as OtherCode

from strait.errors import CorruptBatch
from strait.wire import batch as batches
from strait.wire import records as subject
from strait.wire.compression import compress
from strait.wire.records import Record, build_batch, read_records, split_into

BASE = 1_700_000_000_000
LIMITS_MS = (-(2**63), -1, 0, 2**63 - 1)

times = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([*LIMITS_MS, BASE]))
contents = st.one_of(st.none(), st.just(b""), st.binary(max_size=40))
header_keys = st.one_of(st.text(max_size=5), st.binary(max_size=5)).map(
    lambda key: key.decode(errors="surrogateescape") if isinstance(key, bytes) else key
)
some_records = st.lists(
    st.tuples(times, contents, contents, st.lists(st.tuples(header_keys, contents), max_size=3).map(tuple)),
    min_size=1,
    max_size=20,
).map(lambda each: [Record(number, *fields) for number, fields in enumerate(each)])


def parsed(raw: bytes | bytearray) -> batches.Batch:
    (batch,) = batches.split_batches(memoryview(bytearray(raw)))
    return batch


def sealed(raw: bytearray, **fields: int) -> bytearray:
    """The batch with some header fields changed, and a checksum and length that are right."""
    at = {"base_offset": (0, 8), "attributes": (21, 2), "last_offset_delta": (23, 4), "base_timestamp": (27, 8)}
    at |= {"max_timestamp": (35, 8), "records": (57, 4)}
    for name, value in fields.items():
        place, size = at[name]
        raw[place : place + size] = value.to_bytes(size, "big", signed=True)
    raw[8:12] = (len(raw) - 12).to_bytes(4, "big")
    raw[17:21] = crc32c(bytes(raw[21:])).to_bytes(4, "big")
    return raw


def independent(raw: bytes | bytearray, codec: int) -> list[Any]:
    """What another client reads: kafka-python, or aiokafka for the codecs that the former needs more libraries for."""
    reader = (OtherCode if codec < 2 else AnyCodec)(bytes(raw))
    batch = reader.next_batch()
    assert batch.validate_crc()
    found = [(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in batch]
    assert not reader.has_next()
    return found


@given(some_records, st.integers(0, 4))
@settings(deadline=None)
def test_records_come_back_from_a_batch_as_they_went_in(records: list[Record], codec: int) -> None:
    batch = parsed(build_batch(records, codec))
    assert read_records(batch) == records
    assert (batch.base_offset, batch.records, batch.next_offset) == (0, len(records), len(records))
    assert (batch.attributes, batch.producer_id, batch.leader_epoch) == (codec, -1, -1)
    assert batch.max_timestamp == max(record.timestamp_ms for record in records)


@pytest.mark.parametrize("codec", range(5))
def test_other_clients_read_the_same(codec: int) -> None:
    rng = random.Random(codec)
    records = [
        Record(
            number,
            BASE + rng.randrange(-1000, 1000),
            rng.choice([None, b"", b"key %d" % number]),
            rng.choice([None, b"", rng.randbytes(rng.randrange(3000)), b"x" * rng.randrange(3000)]),
            rng.choice([(), (("a", b"1"), ("a", None)), (("ü", b""),)]),
        )
        for number in range(500)
    ]
    assert independent(build_batch(records, codec), codec) == records


@pytest.mark.parametrize("codec", range(5))
def test_a_hundred_thousand_records_in_one_batch(codec: int) -> None:
    records = [Record(n, BASE + n, b"%d" % n, b"value %d" % n, ()) for n in range(100_000)]
    assert read_records(parsed(build_batch(records, codec))) == records


@pytest.mark.parametrize("codec", range(5))
def test_a_built_batch_is_restamped_as_any_other(codec: int) -> None:
    batch = parsed(build_batch([Record(7, BASE, b"k", b"v", ()), Record(9, BASE, b"k", b"v", ())], codec))
    batches.restamp(batch, 4711, 5)
    again = parsed(bytes(batch.view))
    assert (again.producer_id, again.base_sequence, again.records) == (4711, 5, 2)
    assert [record.offset for record in read_records(again)] == [0, 1]


def test_offsets_are_those_of_the_source_also_where_compaction_left_holes() -> None:
    kept = [Record(delta, BASE + delta, b"k", b"v", ()) for delta in range(5)]
    raw = _with_deltas(kept, [0, 2, 3, 8])
    batch = parsed(sealed(raw, base_offset=2**40, last_offset_delta=9))
    assert [record.offset - 2**40 for record in read_records(batch)] == [0, 2, 3, 8]


def test_a_batch_that_compaction_emptied_has_no_records() -> None:
    raw = build_batch([Record(0, BASE, None, None, ())], 0)[: batches.HEADER_BYTES]
    assert read_records(parsed(sealed(raw, records=0, last_offset_delta=3))) == []


def test_readers_see_the_append_time_of_the_broker() -> None:
    records = [Record(n, BASE + n, None, b"v", (("h", b"x"), ("\udcff", None)) if n == 1 else ()) for n in range(3)]
    for some in (records[:1], records):  # with the compiled codec, and without
        raw = sealed(build_batch(some, 3), attributes=3 | batches.LOG_APPEND_TIME, max_timestamp=BASE + 77)
        assert [record.timestamp_ms for record in read_records(parsed(raw))] == [BASE + 77] * len(some)


def test_times_stay_where_the_base_is_a_deletion_horizon() -> None:
    """A cleaner puts the horizon in place of the base and writes the deltas anew, relative to it."""
    raw = build_batch([Record(0, BASE, b"k", None, ()), Record(1, BASE + 5, b"k", None, ())], 0)
    horizon = BASE + 86_400_000
    first, second = (-(86_400_000) << 1 ^ -1) & (2**64 - 1), (-(86_399_995) << 1 ^ -1) & (2**64 - 1)
    records = b"".join(
        _framed(b"\0" + _unsigned(delta) + bytes([offset << 1]) + b"\2k\1\0")
        for offset, delta in enumerate((first, second))
    )
    raw = sealed(
        raw[: batches.HEADER_BYTES] + bytearray(records), attributes=batches.DELETE_HORIZON, base_timestamp=horizon
    )
    assert [record.timestamp_ms for record in read_records(parsed(raw))] == [BASE, BASE + 5]


@pytest.mark.parametrize("times_ms", [(-1, BASE), (-1, -1, BASE), (-1, -1), (-1,), (BASE, -1), (-1, *LIMITS_MS)])
def test_a_record_without_a_time_keeps_none(times_ms: tuple[int, ...]) -> None:
    records = [Record(n, time_ms, None, b"v", ()) for n, time_ms in enumerate(times_ms)]
    assert [record.timestamp_ms for record in read_records(parsed(build_batch(records, 0)))] == list(times_ms)


def test_nothing_is_not_a_batch() -> None:
    with pytest.raises(ValueError, match="needs a record"):
        build_batch([], 0)


@given(st.lists(st.integers(0, 400), min_size=1, max_size=40), st.integers(0, 4), st.integers(62, 1500))
@settings(deadline=None)
def test_records_are_split_into_batches_that_fit(sizes: list[int], codec: int, max_bytes: int) -> None:
    rng = random.Random(0)
    records = [Record(n, BASE, None, rng.randbytes(size), ()) for n, size in enumerate(sizes)]
    made = split_into(records, codec, max_bytes)
    found = [read_records(parsed(raw)) for raw in made]
    assert [record[1:] for each in found for record in each] == [record[1:] for record in records]
    assert all(len(raw) <= max_bytes or len(each) == 1 for raw, each in zip(made, found, strict=True))
    if len(made) > 1:
        assert len(build_batch(records, codec)) > max_bytes


def test_records_of_one_size_are_split_into_the_fewest() -> None:
    records = [Record(n, BASE, None, b"v" * 100, ()) for n in range(100)]
    size = len(build_batch(records, 0))
    assert [len(split_into(records, 0, size // n + 300)) for n in (1, 2, 3, 5)] == [1, 2, 3, 5]


@pytest.mark.parametrize(
    "fields",
    [
        {"records": -1},
        {"records": 0},
        {"records": 2},
        {"records": 4},
        {"records": 2**31 - 1},
        {"attributes": 5},
        {"attributes": 7},
        {"attributes": 1},
        {"attributes": 2},
        {"attributes": 3},
        {"attributes": 4},
        {"last_offset_delta": 1},
    ],
)
@pytest.mark.parametrize("name", ["h", "\udcff"])
def test_headers_that_do_not_fit_the_records_are_corrupt(fields: dict[str, int], name: str) -> None:
    raw = build_batch([Record(n, BASE, b"k", b"v", ((name, b"x"),)) for n in range(3)], 0)
    with pytest.raises(CorruptBatch, match="batch at offset 0: "):
        read_records(parsed(sealed(raw, **fields)))


@pytest.mark.parametrize("length", [2**63 - 1, 2**63 - 50, 2**62, 2**31])
def test_lengths_beyond_all_memory_are_corrupt(length: int) -> None:
    """The first two overflow in the compiled codec's own check, and are found by Python's allocator."""
    zigzag = length << 1 & (2**64 - 1)
    for before in (
        b"\0\0\0",
        b"\0\0\0\1",
        b"\0\0\0\1\1\2",
        b"\0\0\0\1\1\2\2h",
    ):  # of key, value, header key, header value
        header = build_batch([Record(0, BASE, None, None, ())], 0)[: batches.HEADER_BYTES]
        raw = sealed(header + bytearray(_framed(before + _unsigned(zigzag))), records=1)
        with pytest.raises(CorruptBatch):
            read_records(parsed(raw))


def test_offsets_that_do_not_rise_are_corrupt() -> None:
    kept = [Record(delta, BASE, b"k", b"v", ()) for delta in range(3)]
    for deltas in ([0, 0, 1], [1, 0, 2], [-1, 0, 1], [0, 1, 3]):
        with pytest.raises(CorruptBatch, match="do not rise"):
            read_records(parsed(sealed(_with_deltas(kept, deltas), last_offset_delta=2)))


@given(st.binary(max_size=60), st.integers(0, 4), st.integers(0, 5))
@settings(deadline=None)
def test_any_bytes_under_a_right_checksum_are_records_or_corrupt(data: bytes, codec: int, count: int) -> None:
    header = build_batch([Record(0, BASE, None, None, ())], 0)[: batches.HEADER_BYTES]
    for packed in (data, bytes(compress(data, codec))):
        raw = sealed(header + bytearray(packed), attributes=codec, records=count, last_offset_delta=2**31 - 1)
        try:
            assert len(read_records(parsed(raw))) == count
        except CorruptBatch:
            continue


@given(some_records, st.data())
@settings(deadline=None)
def test_the_compiled_codec_and_the_slow_one_agree_on_damaged_records(
    records: list[Record], data: st.DataObject
) -> None:
    raw = build_batch(records, 0)
    at = data.draw(st.integers(batches.HEADER_BYTES, len(raw) - 1))
    in_attributes = at in _attributes_at(raw, len(records))
    raw[at] ^= data.draw(st.integers(1, 255))
    assume(not (in_attributes and raw[at] >= 0x80))  # which are always 0; aiokafka takes them for a varint
    batch = parsed(sealed(raw))

    def outcome(read: Any) -> list[Record] | None:
        try:
            return list(read(batch, batch.view[batches.HEADER_BYTES :]))
        except (CorruptBatch, UnicodeDecodeError):
            return None

    fast, slow = outcome(subject._read), outcome(subject._read_slowly)
    if fast is not None:  # where it is None, the slow one may have read a key that is not UTF-8
        assert fast == slow


def _attributes_at(raw: bytearray, records: int) -> list[int]:
    """Where each record has its attributes: behind its length."""
    found, at = [], batches.HEADER_BYTES
    for _ in range(records):
        length, shift = 0, 0
        while True:
            byte, at = raw[at], at + 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        found.append(at)
        at += length >> 1
    return found


def _with_deltas(records: list[Record], deltas: list[int]) -> bytearray:
    """A batch whose records have these offset deltas, as a cleaner leaves it: each record is as it was."""
    raw = build_batch([records[0]], 0)[: batches.HEADER_BYTES]
    for delta in deltas:
        raw += _framed(b"\0\0" + _unsigned((delta << 1 ^ delta >> 63) & (2**64 - 1)) + b"\2k\2v\0")
    return sealed(raw, records=len(deltas), last_offset_delta=max(deltas))


def _framed(body: bytes) -> bytes:
    return _unsigned(len(body) << 1) + body


def _unsigned(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
