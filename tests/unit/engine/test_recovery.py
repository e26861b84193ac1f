"""The one recovery path's decision, over generated histories of a destination partition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.engine.recovery.decision import Found, LogState, OnForeign, Refused, Scan, Unproven, from_leader, from_tail
from strait.engine.recovery.tail import Tail
from strait.reasons import Reason
from strait.state.offset_map import SEQUENCE_MODULUS, full_sequence, wire_sequence
from strait.state.schema import OffsetMapping
from support.model.reports import plain_run


def run(*, base: int = 0, source_base: int = 0, checkpoint: int = 0) -> OffsetMapping:
    return plain_run(source_base=source_base, destination_base=base, sequence_end=checkpoint)


def runs(*, base: int = 0, checkpoint: int = 0) -> list[OffsetMapping]:
    return [run(base=base, checkpoint=checkpoint)]


def log(end: int, last: int | None = None, *, readable: int | None = None, start: int = 0) -> LogState:
    """A log that nobody writes to meanwhile."""
    return LogState(end, last, end, end if readable is None else readable, start)


written = st.integers(0, 2**40)
near = st.integers(0, 2**29)


@given(written, near, st.booleans())
def test_the_full_sequence_comes_back_from_31_bits(sequence: int, distance: int, behind: bool) -> None:
    checkpoint = max(0, sequence - distance) if behind else sequence + distance
    assert full_sequence(wire_sequence(sequence), near=checkpoint) == sequence


@given(written, near, st.integers(0, 10**6))
def test_the_leaders_last_sequence_decides(sequence: int, since_checkpoint: int, base: int) -> None:
    checkpoint = max(0, sequence + 1 - since_checkpoint)
    state = log(base + sequence + 1, wire_sequence(sequence))
    assert from_leader(runs(base=base, checkpoint=checkpoint), state) == Found(sequence + 1)


@given(st.integers(0, 10**6), st.integers(1, 100))
def test_what_is_appended_but_not_replicated_counts_too(sequence: int, unreplicated: int) -> None:
    state = log(sequence + 1, sequence, readable=max(0, sequence + 1 - unreplicated))
    assert from_leader(runs(), state) == Found(sequence + 1)


@given(st.integers(0, 10**6), st.integers(1, 100))
def test_what_another_copy_appends_meanwhile_is_no_strangers(sequence: int, more: int) -> None:
    state = LogState(sequence + 1, sequence, sequence + 1 + more, sequence + 1)
    assert from_leader(runs(), state) == Found(sequence + 1)


@given(st.integers(0, 10**6), st.integers(1, 100))
def test_a_log_longer_than_ours_has_a_stranger_in_it(sequence: int, foreign: int) -> None:
    outcome = from_leader(runs(), log(sequence + 1 + foreign, sequence))
    assert isinstance(outcome, Refused)
    assert outcome.reason is Reason.FOREIGN_WRITER


@pytest.mark.parametrize("on_foreign", ["halt", "continue", "expect"])
@given(sequence=st.integers(1, 10**6), lost=st.integers(1, 100))
def test_a_log_shorter_than_its_numbers_has_lost_records(on_foreign: OnForeign, sequence: int, lost: int) -> None:
    """A topic made anew under the same name, which went on with our numbers: they count what is gone."""
    outcome = from_leader(runs(), log(max(0, sequence + 1 - lost), sequence), on_foreign)
    assert isinstance(outcome, Refused)
    assert outcome.reason is Reason.DESTINATION_TRUNCATED


@given(st.integers(0, 10**6), st.integers(0, 1000))
def test_a_destination_that_lost_our_tail_is_copied_again_from_there(checkpoint: int, lost: int) -> None:
    kept = max(1, checkpoint - lost)
    gone = (kept, checkpoint) if kept < checkpoint else None
    assert from_leader(runs(checkpoint=checkpoint), log(kept, kept - 1)) == Found(kept, gone)


@given(st.integers(0, 10**6), st.integers(1, 100))
def test_records_of_others_are_passed_if_they_are_allowed(sequence: int, foreign: int) -> None:
    end = sequence + 1 + foreign
    assert from_leader(runs(), log(end, sequence), "expect") == Found(sequence + 1)
    tail = Tail(5, foreign=5)
    assert from_tail(runs(checkpoint=5), 5 + foreign, tail, "expect") == Found(5, passed=5 + foreign)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_an_unknown_producer_and_nothing_newer_than_the_checkpoint(base: int, checkpoint: int) -> None:
    end = base + checkpoint
    assert from_leader(runs(base=base, checkpoint=checkpoint), log(end)) == Found(checkpoint, passed=end)


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.booleans())
def test_an_unknown_producer_and_a_newer_log_is_read_from_the_checkpoint(
    checkpoint: int, newer: int, replicated: bool
) -> None:
    """What is not replicated is newer, too."""
    end = checkpoint + newer
    state = log(end, readable=end if replicated else checkpoint)
    assert from_leader(runs(checkpoint=checkpoint), state) == Scan(checkpoint)


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_the_last_batch_of_ours_in_the_tail_decides(checkpoint: int, newer: int) -> None:
    last = checkpoint + newer - 1
    tail = Tail(checkpoint, wire_sequence(last), last)
    assert from_tail(runs(checkpoint=checkpoint), last + 1, tail) == Found(last + 1, last_offset=last)


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_an_emptied_log_proves_nothing(checkpoint: int, newer: int) -> None:
    """Its end counts records of others as well; so whoever may go on copies again from the checkpoint."""
    end = checkpoint + newer
    outcome = from_tail(runs(checkpoint=checkpoint), end, Tail(end))
    assert isinstance(outcome, Unproven)
    assert outcome.gone == (checkpoint, end)
    assert outcome.found.sequence == end  # so that numbers fit the log's offsets
    shared = from_tail(runs(checkpoint=checkpoint), end, Tail(end), "expect")
    assert isinstance(shared, Unproven)
    assert shared.found.sequence == checkpoint


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_tail_of_which_the_beginning_is_deleted_proves_nothing(checkpoint: int, deleted: int, foreign: int) -> None:
    start = checkpoint + deleted
    for on_foreign in ("halt", "expect"):
        tail = Tail(start, foreign=start)
        outcome = from_tail(runs(checkpoint=checkpoint), start + foreign, tail, on_foreign)  # type: ignore[arg-type]
        assert isinstance(outcome, Unproven)
        assert outcome.gone == (checkpoint, start)


def test_what_compaction_took_from_the_end_proves_nothing_and_is_nobody_elses() -> None:
    assert isinstance(from_tail(runs(checkpoint=10), 20, Tail(10)), Unproven)
    assert isinstance(from_tail(runs(checkpoint=10), 20, Tail(10, 14, 14)), Unproven)
    refused = from_tail(runs(checkpoint=10), 20, Tail(10, 14, 14, foreign=15))
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.FOREIGN_WRITER


def test_a_tail_of_strangers_alone_is_refused() -> None:
    outcome = from_tail(runs(checkpoint=10), 20, Tail(10, foreign=10))
    assert isinstance(outcome, Refused)
    assert outcome.reason is Reason.FOREIGN_WRITER


def test_a_log_shorter_than_the_checkpoint_is_read_from_its_start() -> None:
    assert from_leader(runs(checkpoint=10), log(5)) == Scan(0)
    assert from_tail(runs(checkpoint=10), 5, Tail(0, 4, 4)) == Found(5, (5, 10), last_offset=4)
    outcome = from_tail(runs(checkpoint=10), 5, Tail(0))
    assert isinstance(outcome, Refused)
    assert outcome.reason is Reason.DESTINATION_TRUNCATED


def test_a_sequence_from_before_the_run_is_refused() -> None:
    odd = run().model_copy(update={"sequence_base": 100, "sequence_end": 100})
    outcome = from_leader([odd], log(50, 49))
    assert isinstance(outcome, Refused)
    assert outcome.reason is Reason.MAP_RUN_MISSING
    assert SEQUENCE_MODULUS == 2**31


def test_a_stranger_before_our_last_record_stays_one_after_the_broker_forgot() -> None:
    """The last batch is ours and further back than its number makes it: compaction never moves a record."""
    shifted = Tail(1000, last_sequence=1104, last_offset=1109)
    outcome = from_tail(runs(checkpoint=1000), 1110, shifted)
    assert isinstance(outcome, Refused) and outcome.reason is Reason.FOREIGN_WRITER


@pytest.mark.parametrize("on_foreign", ["halt", "expect"])
@given(st.integers(0, 100))
def test_a_log_that_began_after_many_records_of_the_link_is_not_too_short(on_foreign: OnForeign, written: int) -> None:
    """Of the records with the first numbers this log has none, so it ends before their number."""
    first = SEQUENCE_MODULUS - 50
    begun = [plain_run(sequence_base=first, sequence_end=first)]
    last = wire_sequence(first + written - 1)
    outcome = from_leader(begun, log(written, last if written else None), on_foreign)
    assert isinstance(outcome, Found)
    assert outcome.sequence == first + written
