"""The one recovery path's decision, over generated histories of a destination partition."""

from hypothesis import given
from hypothesis import strategies as st

from strait.engine import recovery
from strait.offset_map import SEQUENCE_MODULUS, full_sequence, wire_sequence
from strait.reasons import Reason
from strait.state.schema import Run
from support.reports import plain_run


def run(*, base: int = 0, source_base: int = 0, checkpoint: int = 0) -> Run:
    return plain_run(source_base=source_base, destination_base=base, sequence_end=checkpoint)


def runs(*, base: int = 0, checkpoint: int = 0) -> list[Run]:
    return [run(base=base, checkpoint=checkpoint)]


written = st.integers(0, 2**40)
near = st.integers(0, 2**29)


@given(written, near, st.booleans())
def test_the_full_sequence_comes_back_from_31_bits(sequence: int, distance: int, behind: bool) -> None:
    checkpoint = max(0, sequence - distance) if behind else sequence + distance
    assert full_sequence(wire_sequence(sequence), near=checkpoint) == sequence


@given(written, near, st.integers(0, 10**6))
def test_the_leaders_last_sequence_decides(sequence: int, since_checkpoint: int, base: int) -> None:
    checkpoint = max(0, sequence + 1 - since_checkpoint)
    found = recovery.from_leader(runs(base=base, checkpoint=checkpoint), base + sequence + 1, wire_sequence(sequence))
    assert found == recovery.Found(sequence + 1)


@given(st.integers(0, 10**6), st.integers(1, 100))
def test_what_is_appended_but_not_replicated_counts_too(sequence: int, unreplicated: int) -> None:
    end = max(0, sequence + 1 - unreplicated)
    assert recovery.from_leader(runs(), end, wire_sequence(sequence)) == recovery.Found(sequence + 1)


@given(st.integers(0, 10**6), st.integers(1, 100))
def test_a_log_longer_than_ours_has_a_stranger_in_it(sequence: int, foreign: int) -> None:
    outcome = recovery.from_leader(runs(), sequence + 1 + foreign, wire_sequence(sequence))
    assert isinstance(outcome, recovery.Refused)
    assert outcome.reason is Reason.FOREIGN_WRITER


@given(st.integers(0, 10**6), st.integers(0, 1000))
def test_a_destination_that_lost_our_tail_is_copied_again_from_there(checkpoint: int, lost: int) -> None:
    kept = max(1, checkpoint - lost)
    gone = (kept, checkpoint) if kept < checkpoint else None
    assert recovery.from_leader(runs(checkpoint=checkpoint), kept, kept - 1) == recovery.Found(kept, gone)


@given(st.integers(0, 10**6), st.integers(1, 100))
def test_strangers_are_counted_where_they_are_allowed(sequence: int, foreign: int) -> None:
    end = sequence + 1 + foreign
    found = recovery.from_leader(runs(), end, wire_sequence(sequence), strangers_allowed=True)
    assert found == recovery.Found(sequence + 1, None, foreign)
    assert recovery.from_tail(runs(checkpoint=5), 5 + foreign, 0, None, strangers_allowed=True) == recovery.Found(
        5, None, foreign
    )


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_an_unknown_producer_and_nothing_newer_than_the_checkpoint(base: int, checkpoint: int) -> None:
    outcome = recovery.from_leader(runs(base=base, checkpoint=checkpoint), base + checkpoint, None)
    assert outcome == recovery.Found(checkpoint)


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_an_unknown_producer_and_a_newer_log_is_scanned_from_the_checkpoint(checkpoint: int, newer: int) -> None:
    assert recovery.from_leader(runs(checkpoint=checkpoint), checkpoint + newer, None) == recovery.Scan(checkpoint)


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_the_last_batch_of_ours_in_the_tail_decides(checkpoint: int, newer: int) -> None:
    last = checkpoint + newer - 1
    outcome = recovery.from_tail(runs(checkpoint=checkpoint), last + 1, 0, wire_sequence(last))
    assert outcome == recovery.Found(last + 1)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_an_emptied_log_says_it_by_its_end(checkpoint: int, newer: int) -> None:
    end = checkpoint + newer
    assert recovery.from_tail(runs(checkpoint=checkpoint), end, end, None) == recovery.Found(end)


def test_a_tail_of_strangers_alone_is_refused() -> None:
    outcome = recovery.from_tail(runs(checkpoint=10), 20, 0, None)
    assert isinstance(outcome, recovery.Refused)
    assert outcome.reason is Reason.FOREIGN_WRITER


def test_a_log_shorter_than_the_checkpoint_with_nothing_of_ours_is_refused() -> None:
    outcome = recovery.from_tail(runs(checkpoint=10), 5, 0, None)
    assert isinstance(outcome, recovery.Refused)
    assert outcome.reason is Reason.DESTINATION_TRUNCATED


def test_a_sequence_from_before_the_run_is_refused() -> None:
    odd = run().model_copy(update={"sequence_base": 100, "sequence_end": 100})
    outcome = recovery.from_leader([odd], 50, 49)
    assert isinstance(outcome, recovery.Refused)
    assert outcome.reason is Reason.MAP_RUN_MISSING
    assert SEQUENCE_MODULUS == 2**31
