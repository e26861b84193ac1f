"""Copies that end: nothing from the end on is sent, nothing before it is missing, and nothing is fetched behind it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strait.engine.fetch_set import FetchSet, Standing
from strait.engine.partition.report import report_of
from strait.errors import CorruptBatch
from strait.reasons import Reason
from strait.state.schema import TopicPolicy
from strait.wire.bounded import before
from strait.wire.rebatch import shape
from strait.wire.records import Record
from strait.wire.shapes import Piece, Rules, Skipped, Unjudged
from support.model.batches import source_batch
from support.model.histories import MAX_BYTES, History, histories
from support.model.partitions import placed
from unit.engine.test_shaping import RULES, records_of
from unit.engine.test_transforming import Slot

NO_LIMIT = Rules(1 << 62, 1 << 62)
QUEUE_BYTES = 1 << 20


@given(histories(), st.data(), st.sampled_from([RULES, NO_LIMIT]))
@settings(deadline=None)
def test_exactly_the_records_before_the_end_come_out_wherever_replies_end(
    history: History, data: st.DataObject, rules: Rules
) -> None:
    end, position, copied = data.draw(st.integers(0, history.end + 2)), 0, list[Record]()
    last = history.ends[-1] if history.ends else 0
    while position < min(end, last):
        reply = history.bytes_from(position, batches=data.draw(st.integers(1, 8)))
        for item in before(shape(reply, position, history.aborted_from(position), rules), end, rules):
            assert isinstance(item, Piece | Skipped)
            copied += records_of(item) if isinstance(item, Piece) else []
            assert item.position <= end
            position = item.position
    assert copied == [record for record in history.committed if record.offset < end]
    assert position == min(end, last) or end == 0


def test_only_the_batch_that_the_end_divides_is_taken_apart() -> None:
    raw = b"".join(source_batch([Record(n, 5, b"k", b"v" * 99, ()) for n in r], r.start, r.stop) for r in THREE)
    items = list(before(shape(memoryview(raw), 0, (), NO_LIMIT), 150, NO_LIMIT))
    assert [type(item) for item in items] == [Piece, Piece, Skipped]
    assert [item.position for item in items] == [100, 150, 150]
    assert isinstance(items[0], Piece) and items[0].memory is None


THREE = range(100), range(100, 200), range(200, 300)


def test_a_damaged_batch_is_noticed_before_the_end_and_ignored_behind_it() -> None:
    raw = bytearray(
        b"".join(source_batch([Record(n, 5, b"k", b"v" * 99, ()) for n in r], r.start, r.stop) for r in THREE)
    )
    second = len(raw) // 3
    raw[second + 200] ^= 1
    list(before(shape(memoryview(raw), 0, (), NO_LIMIT), 100, NO_LIMIT))
    with pytest.raises(CorruptBatch):
        list(before(shape(memoryview(raw), 0, (), NO_LIMIT), 150, NO_LIMIT))


def test_producers_behind_the_end_need_not_be_judged() -> None:
    raw = source_batch([Record(0, 5, b"k", b"v", ())], 0, 1, producer_id=-1)
    raw += source_batch([Record(1, 5, b"k", b"v", ())], 1, 2, producer_id=9)
    rules = Rules(MAX_BYTES, 1 << 20, left_out={-1: False})
    assert isinstance(list(shape(memoryview(raw), 0, (), rules))[-1], Unjudged)
    items = list(before(shape(memoryview(raw), 0, (), rules), 1, rules))
    assert [item.position for item in items if isinstance(item, Piece | Skipped)] == [1]


def test_a_partition_at_its_end_is_not_fetched_until_the_end_is_later() -> None:
    partition = placed(policy=TopicPolicy(until="latest", ends=(5,)))
    fetched = FetchSet()
    fetched.add(partition, 0.0)
    fetched.update(0.0, QUEUE_BYTES)
    assert fetched.wanted == 1
    partition.skip(5, 7, 0)
    fetched.update(0.0, QUEUE_BYTES)
    assert fetched.wanted == 0 and fetched._standings[Standing.OVER] == 1
    partition.obey(TopicPolicy(until="later", ends=(9,)))
    fetched.update(0.0, QUEUE_BYTES)
    assert fetched.wanted == 1
    partition.obey(TopicPolicy())
    fetched.update(0.0, QUEUE_BYTES)
    assert fetched.wanted == 1 and not partition.finished


def test_it_reports_that_it_has_finished_once_everything_is_acknowledged() -> None:
    partition = placed(policy=TopicPolicy(until="latest", ends=(5,)))
    partition.heard(900, 950, 0)
    copying = report_of(partition, 1)
    assert (copying.state, copying.reason, copying.end, copying.lag_records) == ("copying", None, 5, 5)
    partition.skip(5, 7, 0)
    done = report_of(partition, 1)
    assert (done.state, done.reason, done.position, done.end) == ("caught_up", Reason.FINISHED, 5, 5)
    assert (done.lag_records, done.held_back_records, done.held_since_ms) == (0, 0, -1)


def test_an_end_at_the_start_is_reached_although_nothing_was_ever_fetched() -> None:
    partition = placed(policy=TopicPolicy(until="latest", ends=(0,)))
    assert report_of(partition, 1).reason == Reason.FINISHED
    beyond = placed(7, policy=TopicPolicy(until="latest", ends=(3,)))
    done = report_of(beyond, 1)
    assert (done.reason, done.position, done.end, done.lag_records) == (Reason.FINISHED, 7, 3, 0)


def test_a_source_that_is_away_does_not_matter_any_more_and_a_lost_position_does() -> None:
    partition = placed(policy=TopicPolicy(until="latest", ends=(5,)))
    partition.skip(5, 7, 0)
    partition.block(Reason.SOURCE_UNREACHABLE, "away", 0.0)
    assert report_of(partition, 1).reason == Reason.FINISHED
    partition.reset_position(Reason.DESTINATION_TRUNCATED, "shorter", 0.0)
    assert (report_of(partition, 1).state, report_of(partition, 1).reason) == ("waiting", Reason.DESTINATION_TRUNCATED)


def test_records_from_the_end_on_are_not_even_transformed() -> None:
    slot = Slot(until="latest", ends=(7,))
    slot.fetch(range(3), range(3, 9))
    work = slot.answer(but=(0, 6))
    assert [offset for one in work.stretches for offset in range(one.source, one.source + one.records)] == list(
        range(7)
    )
    assert slot.sent == [b"1", b"2", b"3", b"4", b"5"]
    assert slot.partition.cursor.offset == 7 and not slot.works
