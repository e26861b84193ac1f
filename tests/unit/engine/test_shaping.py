"""What batches become on their way, over generated histories of the source."""

import tracemalloc
from collections.abc import Iterator

import pytest
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from hypothesis import given, settings
from hypothesis import strategies as st

from strait.errors import CorruptBatch
from strait.reasons import Reason
from strait.wire import rebatch
from strait.wire.batch import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Batch, restamp, split_batches
from strait.wire.merge import MERGE_BATCHES
from strait.wire.rebatch import shape
from strait.wire.records import Record, read_in_pieces, read_records
from strait.wire.shapes import (
    Built,
    Paused,
    Piece,
    Quarantined,
    Rules,
    Shape,
    Skipped,
    Stop,
    Unjudged,
)
from support.model.batches import source_batch
from support.model.histories import MAX_BYTES, History, histories

RULES = Rules(MAX_BYTES, 1 << 20)


def shaped(history: History, position: int = 0, rules: Rules = RULES) -> list[Shape]:
    return list(shape(history.bytes_from(position), position, history.aborted_from(position), rules))


def records_of(piece: Piece) -> list[Record]:
    """At their offsets in the source, as the stretches tell them."""
    offsets = [stretch.source + n for stretch in piece.stretches for n in range(stretch.records)]
    records = read_records(piece.batch)
    assert piece.batch.whole
    assert not piece.batch.attributes & LOG_APPEND_TIME
    return [record._replace(offset=offset) for record, offset in zip(records, offsets, strict=True)]


@given(histories(), st.data())
@settings(deadline=None)
def test_all_that_was_committed_comes_out_once_and_in_order(history: History, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, history.end))
    done, copied = position, list[Record]()
    for item in shaped(history, position):
        assert isinstance(item, Piece | Skipped)
        if isinstance(item, Piece):
            records = records_of(item)
            assert done <= records[0].offset
            assert records[-1].offset < item.position
            assert len(item.batch.view) <= MAX_BYTES or len(records) == 1
            assert (item.built is None) == (item.memory is None)
            copied += records
        done = item.position
    assert copied == [record for record in history.committed if record.offset >= position]
    assert done == max(position, history.ends[-1] if history.ends else 0)


@given(histories(), st.data())
@settings(deadline=None)
def test_it_does_not_matter_where_replies_end(history: History, data: st.DataObject) -> None:
    position, copied = 0, list[Record]()
    while position < (history.ends[-1] if history.ends else 0):
        reply = history.bytes_from(position, batches=data.draw(st.integers(1, 8)))
        for item in shape(reply, position, history.aborted_from(position), RULES):
            assert isinstance(item, Piece | Skipped)
            copied += records_of(item) if isinstance(item, Piece) else []
            position = item.position
    assert copied == history.committed


@given(histories(), st.data())
@settings(deadline=None)
def test_records_sent_one_by_one_and_records_quarantine(history: History, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, history.end))
    apart = (first, data.draw(st.integers(first, history.end)))
    offsets = [record.offset for record in history.committed]
    refused = dict.fromkeys(data.draw(st.sets(st.sampled_from(offsets or [0]))), (Reason.BATCH_REFUSED, "why"))
    copied, quarantined = list[Record](), list[Record]()
    for item in shaped(history, rules=RULES._replace(apart=apart, quarantined=refused)):
        if isinstance(item, Quarantined):
            assert (item.reason, item.detail) == refused[item.record.offset]
            quarantined.append(item.record)
        elif isinstance(item, Piece):
            records = records_of(item)
            assert len(records) == 1 or not any(apart[0] <= record.offset < apart[1] for record in records)
            copied += records
    assert quarantined == [record for record in history.committed if record.offset in refused]
    assert copied == [record for record in history.committed if record.offset not in refused]


@given(histories(), st.integers(100, 2_000))
@settings(deadline=None)
def test_a_record_too_large_stops_it_with_all_before_it_passed(history: History, limit: int) -> None:
    copied, expected = list[Record](), history.committed
    for item in shape(history.bytes_from(0), 0, history.aborted_from(0), Rules(limit, limit)):
        if isinstance(item, Stop):  # nobody goes on behind it
            assert item.reason is Reason.BATCH_TOO_LARGE
            expected = [record for record in history.committed if record.offset < item.offset]
            break
        if isinstance(item, Piece):
            assert len(item.batch.view) <= limit
            copied += records_of(item)
    assert copied == expected


def row(count: int, each: int, codec: int = 0) -> History:
    history = History()
    for number in range(count):
        first = number * each
        records = [Record(first + n, 5, b"k", b"v", ()) for n in range(each)]
        history.batches.append(source_batch(records, first, first + each, codec=codec))
        history.ends.append(first + each)
        history.committed += records
    history.end = count * each
    return history


def test_small_batches_in_a_row_become_one_and_a_few_pass_as_they_are() -> None:
    def pieces(count: int) -> list[Piece]:
        return [item for item in shaped(row(count, 1)) if isinstance(item, Piece)]

    assert len(pieces(100)) == 1
    assert len(pieces(MERGE_BATCHES - 1)) == MERGE_BATCHES - 1
    assert all(piece.memory is None for piece in pieces(MERGE_BATCHES - 1))


def large(*, attributes: int = 0, behind: int = 100) -> memoryview:
    """One batch that nobody would merge."""
    held = [Record(n, 1, b"k", b"v" * 1000, ()) for n in range(100)]
    return memoryview(source_batch(held, 0, behind, attributes=attributes))


def old_messages(count: int) -> memoryview:
    """As a client of that time sends it, from aiokafka."""
    builder = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    for number in range(count):
        builder.append(number, 1, b"k", b"v")
    return memoryview(bytearray(builder.build()))


WIDE = Rules(1 << 20, 1 << 20)


@pytest.mark.parametrize(
    ("records", "position", "rules", "why"),
    [
        (large(), 0, WIDE, None),
        (large(), 50, WIDE, Built.INCOMPLETE),
        (large(behind=101), 0, WIDE, Built.INCOMPLETE),
        (large(attributes=LOG_APPEND_TIME), 0, WIDE, Built.APPEND_TIME),
        (large(), 0, WIDE._replace(max_batch_bytes=10_000), Built.TOO_LARGE),
        (large(), 0, WIDE._replace(apart=(10, 20)), Built.SINGLED_OUT),
        (large(), 0, WIDE._replace(quarantined={50: (Reason.BATCH_REFUSED, "")}), Built.SINGLED_OUT),
        (memoryview(row(100, 1).bytes_from(0)), 0, WIDE, Built.MERGED),
        (memoryview(row(100, 1, codec=3).bytes_from(0)), 0, WIDE, Built.MERGED),
        (old_messages(3), 0, WIDE, Built.OLD_FORMAT),
    ],
)
def test_a_batch_that_is_built_says_why(records: memoryview, position: int, rules: Rules, why: Built | None) -> None:
    assert {item.built for item in shape(records, position, (), rules) if isinstance(item, Piece)} == {why}


def test_whole_batches_pass_untouched() -> None:
    history = row(5, 1_000, codec=3)
    pieces = [item for item in shaped(history, rules=Rules(1 << 20, 1 << 20)) if isinstance(item, Piece)]
    assert [bytes(piece.batch.view) for piece in pieces] == [bytes(batch) for batch in history.batches]
    assert [piece.crcs for piece in pieces] == [piece.batch.crc_bytes for piece in pieces]


@given(histories(), st.data())
@settings(deadline=None)
def test_copies_are_left_out_and_nothing_passes_that_nobody_has_judged(history: History, data: st.DataObject) -> None:
    links = data.draw(st.sets(st.integers(1, 5)))
    judged, position, left_out, copied = {-1: False}, 0, 0, list[Record]()
    rules = RULES._replace(left_out=judged)
    while position < (history.ends[-1] if history.ends else 0):
        reply = history.bytes_from(position, batches=data.draw(st.integers(1, 8)))
        for item in shape(reply, position, history.aborted_from(position), rules):
            assert isinstance(item, Piece | Skipped | Unjudged)
            if isinstance(item, Unjudged):
                assert item.producer_ids
                assert not item.producer_ids & judged.keys()
                judged |= {producer_id: producer_id in links for producer_id in item.producer_ids}
                break
            copied += records_of(item) if isinstance(item, Piece) else []
            left_out += item.left_out if isinstance(item, Skipped) else 0
            position = item.position
    born_here = [record for record in history.committed if history.producers[record.offset] not in links]
    assert copied == born_here
    assert left_out == len(history.committed) - len(born_here)


def test_what_is_damaged_behind_a_batch_that_is_to_be_judged_is_told_later() -> None:
    batches = [source_batch([Record(n, 1, b"k", b"v", ())], n, n + 1, producer_id=n) for n in range(3)]
    batches[2][16] = 9  # no format that there is
    found = list(shape(memoryview(bytearray().join(batches)), 0, (), RULES._replace(left_out={0: False})))
    assert [type(item) for item in found] == [Piece, Skipped, Unjudged]
    assert found[-1] == Unjudged(frozenset({1}))


def damaged(*, attributes: int = 0, records: int = 100, behind: int = 100) -> memoryview:
    """One batch with a bit flipped in its last record."""
    held = [Record(n, 1, b"k", b"v" * 1000, ()) for n in range(records)]
    raw = source_batch(held, 0, behind, attributes=attributes, producer_id=7)
    raw[-20] ^= 1
    return memoryview(raw)


def test_what_is_damaged_and_passes_is_still_damaged_for_the_destination_to_see() -> None:
    piece, _ = list(shape(damaged(), 0, (), RULES._replace(max_batch_bytes=1 << 20)))
    assert isinstance(piece, Piece)
    restamp(piece.batch, 4711, 5)
    with pytest.raises(CorruptBatch):
        list(split_batches(piece.batch.view))


@pytest.mark.parametrize(
    ("records", "position", "aborted", "rules"),
    [
        (damaged(attributes=CONTROL | TRANSACTIONAL), 0, (), RULES),
        (damaged(attributes=TRANSACTIONAL), 0, ((7, 0),), RULES),
        (damaged(), 0, (), RULES._replace(left_out={7: True})),
        (damaged(), 100, (), RULES),
        (damaged(), 50, (), RULES),
        (damaged(behind=101), 0, (), RULES),
        (damaged(attributes=LOG_APPEND_TIME), 0, (), RULES),
        (damaged(), 0, (), RULES._replace(max_batch_bytes=1000)),
        (damaged(), 0, (), RULES._replace(max_batch_bytes=1 << 20, checked_to=1)),
    ],
    ids=["marker", "aborted", "a copy", "behind us", "begun", "with holes", "stamped", "too large", "to be checked"],
)
def test_what_is_damaged_is_neither_dropped_nor_taken_apart(
    records: memoryview, position: int, aborted: tuple[tuple[int, int], ...], rules: Rules
) -> None:
    with pytest.raises(CorruptBatch):
        list(shape(records, position, aborted, rules))


def test_few_bytes_that_hold_many_are_not_merged_without_bound() -> None:
    records = [Record(number, 0, b"", bytes([number]) + bytes(1 << 20), ()) for number in range(20)]
    small = b"".join(bytes(source_batch([one], one.offset, one.offset + 1, codec=4)) for one in records)
    assert len(small) < 10_000
    for rules in (WIDE, Rules(1 << 62, 1 << 62)):
        pieces = [one for one in shape(memoryview(small), 0, (), rules) if isinstance(one, Piece)]
        found = [read_records(piece.batch) for piece in pieces]
        assert [one.value for part in found for one in part] == [one.value for one in records]
        assert 1 < max(map(len, found)) <= 5
        assert [it for piece in pieces for it in piece.stretches][-1].source <= 19
        assert pieces[-1].position == 20


def test_no_damaged_batch_is_merged_with_others() -> None:
    batches = [source_batch([Record(n, 1, b"k", b"v" * 50, ())], n, n + 1) for n in range(MERGE_BATCHES + 1)]
    batches[-1][-2] ^= 1
    with pytest.raises(CorruptBatch):
        list(shape(memoryview(bytearray().join(batches)), 0, (), RULES))


def test_a_small_batch_of_very_many_records_is_taken_apart_in_bounded_memory() -> None:
    """Each record takes some 200 bytes once it is read, and one byte or so in the batch."""
    count = 300_000
    shapes = shape(tiny_records(count), 0, (), RULES._replace(apart=(0, 1)))
    copied = 0
    tracemalloc.start()
    for item in shapes:
        if isinstance(item, Piece):
            copied += item.batch.records
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert copied == count
    assert most < 24 << 20


def tiny_records(count: int) -> memoryview:
    return memoryview(source_batch([Record(n, 5, None, b"", ()) for n in range(count)], 0, count, codec=4))


@pytest.mark.parametrize("position", [0, 390_000])
def test_a_batch_of_very_many_records_is_read_once_in_turns_of_bounded_length(
    position: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, read, turns = 400_000, 0, [0]

    def counted(batch: Batch, records: int) -> Iterator[list[Record]]:
        nonlocal read
        for piece in read_in_pieces(batch, records):
            read += len(piece)
            turns[-1] += len(piece)
            yield piece

    monkeypatch.setattr(rebatch, "read_in_pieces", counted)
    copied = 0
    for item in shape(tiny_records(count), position, (), RULES._replace(apart=(0, 1))):
        if isinstance(item, Paused):
            turns.append(0)
        elif isinstance(item, Piece):
            copied += item.batch.records
    assert (read, copied) == (count, count - position)
    assert max(turns) == rebatch.TURN_RECORDS
