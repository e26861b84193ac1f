"""Record batches against an independent encoder (aiokafka's compiled one)."""

import random

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from strait.errors import CorruptBatch
from strait.wire import batch as batches

PRODUCER, SEQUENCE = 4711, 2**31 - 7


def built(records: int, *, codec: int = 0, base_offset: int = 0, deltas: list[int] | None = None) -> bytearray:
    """A batch as an ordinary producer makes it, put at an offset as a broker does."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for number, delta in enumerate(deltas or range(records)):
        builder.append(delta, 1_700_000_000_000 + number, b"key %d" % number, b"value" * number, [("h", b"x")])
    raw = bytearray(builder.build())
    raw[0:8] = base_offset.to_bytes(8, "big")
    raw[12:16] = (5).to_bytes(4, "big")  # a leader epoch
    return raw


def read(raw: bytes) -> list[tuple[int, int, bytes, bytes]]:
    records = []
    parsed = MemoryRecords(bytes(raw))
    while parsed.has_next():
        batch = parsed.next_batch()
        assert batch.validate_crc()
        records += [(record.offset, record.timestamp, record.key, record.value) for record in batch]
    return records


@pytest.mark.parametrize("codec", range(5))
def test_a_restamped_batch_holds_the_same_records_under_our_producer(codec: int) -> None:
    raw = built(20, codec=codec, base_offset=100)
    before = read(raw)
    (batch,) = batches.split_batches(memoryview(raw))
    batches.restamp(batch, PRODUCER, SEQUENCE)
    assert [(offset + 100, *rest) for offset, *rest in read(raw)] == before
    (after,) = batches.split_batches(memoryview(raw))
    assert (after.base_offset, after.leader_epoch) == (0, -1)
    assert (after.producer_id, after.producer_epoch, after.base_sequence) == (PRODUCER, 0, SEQUENCE)
    assert (after.records, after.max_timestamp, after.attributes) == (20, batch.max_timestamp, codec)


def test_the_deletion_horizon_is_cleared_and_timestamps_stay() -> None:
    raw = built(3)
    raw[22] |= batches.DELETE_HORIZON
    _seal(raw)
    before = [record[1] for record in read(raw)]
    (batch,) = batches.split_batches(memoryview(raw))
    batches.restamp(batch, PRODUCER, 0)
    (after,) = batches.split_batches(memoryview(raw))
    assert not after.attributes & batches.DELETE_HORIZON
    assert [record[1] for record in read(raw)] == before


@pytest.mark.parametrize("seed", range(20))
def test_bytes_cut_anywhere_never_yield_part_of_a_batch(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.randrange(1, 30) for _ in range(5)]
    raw = b"".join(bytes(built(size, codec=rng.randrange(5))) for size in sizes)
    whole = [len(batch.view) for batch in batches.split_batches(memoryview(raw))]
    assert sum(whole) == len(raw)
    for cut in rng.sample(range(len(raw)), 60):
        found = [len(batch.view) for batch in batches.split_batches(memoryview(raw)[:cut])]
        assert found == whole[: len(found)]
        assert cut - sum(found) < (whole[len(found)] if len(found) < len(whole) else 1)


@given(st.data())
def test_a_changed_byte_is_never_passed_on(data: st.DataObject) -> None:
    raw = built(5, codec=3)
    at = data.draw(st.integers(8, len(raw) - 1))
    if 12 <= at < 16:  # the leader epoch lies outside the checksum and is replaced anyway
        return
    raw[at] ^= data.draw(st.integers(1, 255))
    try:
        found = [batch for batch in batches.split_batches(memoryview(raw)) if batches.refusal(batch, 0) is None]
    except CorruptBatch:
        return
    assert not found


@given(st.binary(max_size=300))
def test_random_bytes_end_in_nothing_or_a_typed_error(raw: bytes) -> None:
    try:
        assert all(batches.refusal(batch, 0) for batch in batches.split_batches(memoryview(bytearray(raw))))
    except CorruptBatch:
        return


def test_old_formats_are_told_by_their_magic_alone() -> None:
    raw = bytearray(40)
    raw[8:12] = (28).to_bytes(4, "big")
    raw[16] = 1
    (batch,) = batches.split_batches(memoryview(raw))
    assert (batch.magic, len(batch.view)) == (1, 40)


def _seal(raw: bytearray) -> None:
    raw[17:21] = batches.crc32c(bytes(raw[21:])).to_bytes(4, "big")
