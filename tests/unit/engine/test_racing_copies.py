"""Copies that race, crash and write their maps ahead, over generated histories: what the engine decides, without
sockets."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strait.engine import checkpointer, packing, transforming
from strait.state.codec import run_key
from strait.state.offset_map import Gap, covering, destination_offset, gaps_of
from strait.state.transform import TopicTransform
from strait.state.translation import Fit, Translator
from strait.wire.records import Record
from support.model.batches import source_batch
from support.model.histories import History, histories
from support.model.racing import Copy, World

GAPPY = ("small", "small", "plain", "transactional", "end", "missing", "holes")
STEPS = ("fetch", "fetch", "settle", "settle", "send", "send", "keep_map", "keep_map", "crash", "doubt", "forget")


@pytest.fixture(autouse=True, scope="module")
def _pack_often() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packing, "PACK_RUNS", 2)
        patch.setattr(packing, "PACKED_GAPS", 5)
        patch.setattr(checkpointer, "PASSED_OFFSETS", 1)
        yield


def assert_map_says_where_all_are(world: World, since: int = 0) -> None:
    words = sorted({gap for run in world.runs for gap in gaps_of(run)})
    for sequence, record in list(enumerate(world.log))[since:]:
        word = words[bisect_right(words, Gap(sequence, record.offset)) - 1]
        assert word.source + sequence - word.sequence == record.offset
        assert destination_offset(covering(world.runs, sequence), sequence) == sequence


def assert_offsets_translate(world: World) -> None:
    """Never too late, and exact where it says so, whatever the copies have written into the map so far."""
    copied = [record.offset for record in world.log]
    translator = Translator(world.runs, written=len(copied))
    for offset in range(copied[0] if copied else 0, copied[-1] + 3 if copied else 3):
        found, records = translator.to_destination(offset), bisect_left(copied, offset)
        assert found.offset <= records
        assert found.fit is not Fit.EXACT or found.offset == records
    for records in range(1, len(copied) + 1):
        found = translator.to_source(records)
        unread = world.expected[records].offset if records < len(world.expected) else found.offset
        assert found.offset <= unread
        assert found.fit is not Fit.EXACT or copied[records - 1] < found.offset
        further = translator.next_to_source(records, Gap(0, 0))
        assert found.offset <= further.offset <= unread and further.fit is found.fit


def finish(world: World, copy: Copy) -> None:
    """Without faults all of it is copied."""
    copy.notes.settle(1 << 30)
    for _ in range(len(world.history.batches) + 1):  # the first round may end in a conflict
        copy.fetch(5)
        while copy.evaluation.waits:
            copy.evaluation.settle(1)
        copy.notes.settle(1 << 30)
        copy.send()
    copy.keep_map()
    copy.notes.settle(1 << 30)


@given(histories(kinds=GAPPY, fewest=20), st.data())
@settings(deadline=None, max_examples=150)
def test_each_record_is_copied_once_and_the_map_always_says_where_it_was(history: History, data: st.DataObject) -> None:
    links = data.draw(st.sets(st.integers(1, 5)))
    world = World(history, data.draw(st.integers(0, max(0, history.end // 2))), links)
    race(world, data, STEPS)


@given(histories(kinds=GAPPY, fewest=20), st.data())
@settings(deadline=None, max_examples=150)
def test_each_transformed_record_is_copied_once_and_all_offsets_translate(
    history: History, data: st.DataObject
) -> None:
    """Two copies have the records evaluated at different moments, and in pieces of other sizes."""
    start = data.draw(st.integers(0, max(0, history.end // 2)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transforming, "WORK_RECORDS", data.draw(st.integers(1, 12)))
        world = World(
            history, start, data.draw(st.sets(st.integers(1, 5))), TRANSFORM, data.draw(st.integers(150, 4_000))
        )
        race(world, data, (*STEPS, "evaluate", "evaluate", "evaluate"))


TRANSFORM = TopicTransform(where="*", key="of the model", value="of the model", malformed="quarantine")


def race(world: World, data: st.DataObject, steps: Sequence[str]) -> None:
    copies = [Copy(world), Copy(world)]
    for _ in range(data.draw(st.integers(20, 150))):
        copy = data.draw(st.sampled_from(copies))
        step = data.draw(st.sampled_from(steps))
        if step == "fetch":
            copy.fetch(data.draw(st.integers(1, 3)))
        elif step == "evaluate":
            copy.evaluation.settle(data.draw(st.integers(1, 2)))
        elif step == "settle":
            copy.notes.settle(data.draw(st.integers(1, 3)))
        elif step == "send":
            copy.send()
        elif step == "keep_map":
            copy.keep_map()
        elif step == "forget":
            world.forgotten = True
        elif step == "doubt":
            copy.partition.reset_position(None, "", 0.0)
        else:
            copy.notes.settle(data.draw(st.integers(0, 3)), acknowledge=False)
            copy.start()
        assert_map_says_where_all_are(world)
        assert_offsets_translate(world)
    finish(world, copies[0])
    assert world.log == world.expected
    assert_map_says_where_all_are(world)
    assert_offsets_translate(world)


@given(histories(), st.data())
@settings(deadline=None)
def test_what_is_forgotten_says_nothing_of_what_the_destination_holds(history: History, data: st.DataObject) -> None:
    world = World(history)
    copy = Copy(world)
    log_start = 0
    while len(world.log) < len(world.expected):
        copy.fetch(data.draw(st.integers(1, 3)))
        copy.notes.settle(1 << 30)
        copy.send()
        log_start = data.draw(st.integers(log_start, len(world.log)))
        copy.keep_map(log_start)
        copy.notes.settle(1 << 30)
        assert_map_says_where_all_are(world, since=log_start)
    copy.start()
    copy.find()
    assert copy.partition.cursor.sequence == len(world.expected)


@given(histories(), st.data())
@settings(deadline=None)
def test_batches_before_a_gap_do_not_wait_for_it_to_be_written_down(history: History, data: st.DataObject) -> None:
    world = World(history)
    copy = Copy(world)
    copy.fetch(data.draw(st.integers(1, 40)))
    copy.send()
    first_gap = next((n for n, record in enumerate(world.expected) if record.offset != n), len(world.expected))
    queued = copy.partition.queue.batches
    assert not queued or queued[0].sequence <= first_gap < queued[0].sequence + queued[0].records
    copy.notes.settle(1 << 30)
    copy.send()
    assert not queued


def test_a_stale_word_about_a_record_that_was_refused_and_then_taken_skips_nothing() -> None:
    """Record 3 was to be quarantined, so the map says that the next one is the third. Then its limit was raised."""
    history = History()
    for offset in range(10):
        record = Record(offset, 5, b"k", b"%d" % offset, ())
        history.batches.append(source_batch([record], offset, offset + 1))
        history.ends.append(offset + 1)
        history.committed.append(record)
    world = World(history)
    copy = Copy(world)
    copy.fetch(3)
    copy.send()
    stale = world.runs[0].model_copy(update={"sequence_base": 3, "source_base": 4, "destination_base": 3})
    world.map[run_key(stale)] = stale
    for batches in (2, 5):
        copy.start()
        copy.fetch(batches)
        copy.notes.settle(1 << 30)
        copy.send()
    assert world.log == world.expected


@given(histories(kinds=("small", "plain"), fewest=5), st.data())
@settings(deadline=None)
def test_what_holds_only_copies_is_not_read_again_after_a_restart(history: History, data: st.DataObject) -> None:
    links = data.draw(st.sampled_from(({-1, 4, 5}, {4, 5}, {4})))
    world = World(history, links=links)
    copy = Copy(world)
    while copy.partition.cursor.offset < history.end:
        copy.fetch(data.draw(st.integers(1, 5)))
        copy.notes.settle(1 << 30)
        copy.send()
        copy.keep_map()
        copy.notes.settle(1 << 30)
        copy.notes.settle(1 << 30)  # what the new word replaces is forgotten once it is written
        if data.draw(st.booleans()):
            position = copy.partition.cursor.offset
            copy.start()
            copy.find()
            assert copy.partition.cursor.offset == position
        assert_map_says_where_all_are(world)
    assert world.log == world.expected
