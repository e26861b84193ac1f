"""Offsets translate exactly in both directions, at any lag; where the map cannot know, never too late."""

from bisect import bisect_left
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.state.offset_map import Gap, pack
from strait.state.schema import OffsetMapping
from strait.state.translation import Fit, Translator
from support.model.reports import plain_run


def run(source: int, destination: int, sequence: int, gaps: tuple[Gap, ...] = (), end: int = 0) -> OffsetMapping:
    packed = pack(gaps, sequence_base=sequence, source_base=source)
    return plain_run(
        source_base=source,
        destination_base=destination,
        sequence_base=sequence,
        sequence_end=max(end, 0),
        gaps=packed,
    )


class History:
    """Records of the link at these offsets of both sides, and the map's entries as slots write them: another one where
    somebody else's records come before one, and wherever a slot starts."""

    def __init__(self, sources: list[int], destinations: list[int], starts: set[int], confirmed: int) -> None:
        self.sources, self.destinations = sources, destinations
        shifts = {n for n in range(1, len(sources)) if destinations[n] - destinations[n - 1] > 1}
        bases = sorted({0, *shifts, *(n for n in starts if n < len(sources))})
        self.runs = []
        for base, end in pairwise([*bases, len(sources)]):
            gaps = tuple(Gap(n, sources[n]) for n in range(base + 1, end) if sources[n] - sources[n - 1] > 1)
            known = min(confirmed, end)
            self.runs.append(run(sources[base], destinations[base], base, gaps, known if known > base else 0))


@st.composite
def histories(draw: st.DrawFn) -> History:
    steps = st.lists(st.sampled_from([1, 1, 1, 2, 3, 7]), min_size=1, max_size=40)
    first = draw(st.integers(0, 50))
    sources = [first + step for step in accumulate(draw(steps))]
    destinations = list(
        accumulate(draw(st.lists(st.sampled_from([1, 1, 1, 4]), min_size=len(sources), max_size=len(sources))))
    )
    starts = draw(st.sets(st.integers(0, 39), max_size=4))
    return History(sources, destinations, starts, draw(st.integers(0, len(sources))))


@given(histories(), st.randoms())
def test_each_offset_is_after_the_same_records_on_both_sides(history: History, random: Any) -> None:
    runs = list(history.runs)
    random.shuffle(runs)
    translator = Translator(runs, written=len(history.sources))
    for offset in range(history.sources[0], history.sources[-1] + 2):
        records = bisect_left(history.sources, offset)
        expected = history.destinations[records - 1] + 1 if records else history.destinations[0]
        assert translator.to_destination(offset) == (expected, Fit.EXACT)
    for offset in range(history.destinations[0], history.destinations[-1] + 2):
        records = bisect_left(history.destinations, offset)
        expected = history.sources[records - 1] + 1 if records else history.sources[0]
        assert translator.to_source(offset) == (expected, Fit.EXACT)


@given(histories(), st.integers(0, 40), st.integers(0, 9))
def test_a_route_returns_to_its_next_record_or_to_where_it_has_read(history: History, read: int, more: int) -> None:
    translator = Translator(history.runs, written=len(history.sources))
    reported = min(read, len(history.sources))
    most = history.sources[reported] if reported < len(history.sources) else history.sources[-1] + 10
    position = min(most, (history.sources[reported - 1] + 1 if reported else 0) + more)
    for offset in range(history.destinations[0], history.destinations[-1] + 2):
        records = bisect_left(history.destinations, offset)
        if records < len(history.sources):
            expected = history.sources[records]  # however old the report is
        else:
            expected = max(history.sources[-1] + 1, position)
        assert translator.next_to_source(offset, Gap(reported, position)) == (expected, Fit.EXACT)


@given(histories())
def test_the_last_confirmed_record_is_on_both_sides(history: History) -> None:
    last = Translator(history.runs).last_record()
    confirmed = max(run.sequence_end for run in history.runs)
    assert last == ((history.sources[confirmed - 1], history.destinations[confirmed - 1]) if confirmed else None)


@given(histories())
def test_among_others_it_is_never_too_late_and_exact_where_it_says_so(history: History) -> None:
    translator = Translator(history.runs, written=len(history.sources), shared=True)
    for offset in range(history.sources[0], history.sources[-1] + 2):
        records, found = bisect_left(history.sources, offset), translator.to_destination(offset)
        truth = history.destinations[records - 1] + 1 if records else history.destinations[0]
        assert found.offset <= truth
        assert found.fit is not Fit.EXACT or found.offset == truth or not records
    for offset in range(history.destinations[0], history.destinations[-1] + 2):
        records, found = bisect_left(history.destinations, offset), translator.to_source(offset)
        truth = history.sources[records - 1] + 1 if records else history.sources[0]
        assert found.offset <= truth
        assert found.fit is not Fit.EXACT or found.offset == truth


@given(histories())
def test_what_is_not_replicated_is_said(history: History) -> None:
    translator = Translator(history.runs, written=len(history.sources))
    end = history.destinations[-1] + 1
    assert translator.to_destination(history.sources[-1] + 9) == (end, Fit.AHEAD)
    assert translator.to_source(end + 1) == (history.sources[-1] + 1, Fit.AHEAD)
    if history.sources[0]:
        assert translator.to_destination(history.sources[0] - 1) == (history.destinations[0], Fit.BEFORE_START)
    passed = Translator(history.runs, len(history.sources), position=history.sources[-1] + 9)
    assert passed.to_destination(history.sources[-1] + 9) == (end, Fit.EXACT), "only markers are there"


@given(histories(), st.integers(0, 40))
def test_entries_ahead_of_what_is_written_promise_nothing(history: History, written: int) -> None:
    known = max(min(written, len(history.sources)), *(run.sequence_end for run in history.runs))
    translator = Translator(history.runs, written=known)
    for offset in range(history.sources[0], history.sources[-1] + 9):
        records = min(bisect_left(history.sources, offset), known)
        assert translator.to_destination(offset).offset == (
            history.destinations[records - 1] + 1 if records else history.destinations[0]
        )


def test_while_entries_disagree_it_is_never_too_late() -> None:
    """Two writers saw another record behind 9: compaction took the one at 15 between them."""
    first, second = run(0, 0, 0, (Gap(10, 15),), end=5), run(9, 9, 9, (Gap(10, 18),))
    translator = Translator([first, second], written=20)
    assert translator.to_destination(9) == (9, Fit.EXACT)
    assert translator.to_destination(19) == (11, Fit.INEXACT)
    assert translator.to_source(12).fit is Fit.INEXACT
    assert translator.to_source(12).offset <= 17
    settled = second.model_copy(update={"sequence_end": 20})
    assert Translator([first, settled], written=20).to_destination(19) == (11, Fit.EXACT)


def test_a_source_replicated_again_after_truncation_counts_as_it_is_now() -> None:
    runs = [run(0, 0, 0, end=100), run(0, 100, 100, end=150)]
    translator = Translator(runs)
    assert translator.to_destination(5) == (105, Fit.EXACT)
    assert translator.to_destination(50) == (150, Fit.EXACT)
    assert translator.to_source(103) == (3, Fit.EXACT)
    assert translator.to_source(40) == (0, Fit.INEXACT), "its records are there again, or others in their place"


def test_a_route_of_a_source_that_was_truncated_and_replicated_again_has_an_offset_for_each() -> None:
    translator = Translator([run(0, 0, 0, end=100), run(60, 100, 100, end=140)], 140, 100)
    read = Gap(140, 100)
    for offset in range(141):
        assert translator.next_to_source(offset, read).offset >= translator.to_source(offset).offset
    assert translator.next_to_source(60, read) == (60, Fit.EXACT)


def test_a_compacted_source_read_again_from_a_checkpoint() -> None:
    """The last record that was copied had been compacted away, so copying went back to the checkpoint at 20."""
    translator = Translator([run(0, 0, 0, end=20), run(20, 30, 30, end=50)])
    assert translator.to_destination(5) == (5, Fit.EXACT)
    assert translator.to_source(5) == (5, Fit.EXACT)
    assert translator.to_destination(25) == (35, Fit.EXACT)
    assert translator.to_source(25) == (20, Fit.INEXACT)


def test_a_truncated_source_that_went_on() -> None:
    """Truncated at 60 after 100 records; what came since is copied from there."""
    translator = Translator([run(0, 0, 0, end=100), run(60, 100, 100, end=130)])
    assert translator.to_destination(30) == (30, Fit.EXACT)
    assert translator.to_destination(70) == (110, Fit.EXACT)
    assert translator.to_source(30) == (30, Fit.EXACT)
    assert translator.to_source(80) == (60, Fit.INEXACT)


@pytest.mark.parametrize("end", [120, 100])
def test_a_source_truncated_below_an_entry_that_nothing_has_confirmed(end: int) -> None:
    """Record 99 was at 109; the source was cut at 105, where record 100 is now."""
    runs = [run(0, 0, 0, end=40), run(60, 50, 50, end=45), run(105, 100, 100, end=end)]
    translator = Translator(runs, written=120)
    for records in range(96, 101):
        found = translator.to_source(records)
        assert found.offset <= 105
        assert found.fit is Fit.INEXACT
    assert translator.to_source(90) == (100, Fit.EXACT)


def test_of_two_claims_about_one_record_neither_is_taken_for_true() -> None:
    """A record was to be quarantined, which was written ahead, and was taken after all."""
    translator = Translator([run(0, 0, 0, end=3), run(4, 3, 3, end=2), run(3, 3, 3, end=2)], written=12)
    assert translator.to_destination(3) == (3, Fit.EXACT)
    for offset in range(4, 12):
        found = translator.to_destination(offset)
        assert found.fit is Fit.INEXACT
        assert found.offset <= offset
        assert translator.to_source(offset).fit is Fit.INEXACT
        assert translator.to_source(offset).offset <= offset


def test_a_start_after_what_a_rule_left_out_and_the_next_record_behind_it_agree() -> None:
    """The link stopped after it had left out offsets 10 to 99; the first record that it copied then was at 120."""
    before, passed = run(0, 0, 0, end=10), run(100, 10, 10, end=10).model_copy(update={"checkpoint_at_ms": 1})
    translator = Translator([before, passed, run(120, 10, 10, end=10)], written=15, position=130)
    for offset in range(131):
        assert translator.to_destination(offset) == (min(offset, 10, 15) + max(0, min(offset, 125) - 120), Fit.EXACT)
    assert [translator.to_source(offset) for offset in (10, 11)] == [(10, Fit.EXACT), (121, Fit.EXACT)]
    assert Translator([passed], position=130).to_destination(110) == (10, Fit.EXACT)
    claimed = passed.model_copy(update={"checkpoint_at_ms": 0})
    assert (
        Translator([before, claimed, run(120, 10, 10, end=10)], written=15, position=130).to_destination(110).fit
        is Fit.INEXACT
    )


def test_gaps_of_a_writer_that_lost_a_race_on_a_compacted_source_are_not_believed() -> None:
    """The winner found none, and so wrote none; until a checkpoint says where records are."""
    loser = run(12, 10, 10, (Gap(20, 25),))
    for later in ([], [run(40, 40, 40, end=60)]):
        translator = Translator([run(0, 0, 0, end=10), loser, *later], written=60, compacted=True)
        assert translator.to_source(30).offset <= 30
        assert translator.to_source(30).fit is Fit.INEXACT
        assert translator.to_destination(30).offset <= 30
        assert translator.to_destination(30).fit is Fit.INEXACT
        assert translator.to_destination(8) == (8, Fit.EXACT)
        assert translator.to_source(50).fit is (Fit.EXACT if later else Fit.INEXACT)


def test_among_others_a_checkpoint_knows_only_where_the_next_record_was_due() -> None:
    """Packed entries give the newest record's place: others' records may have come before any of the older ones."""
    packed = run(0, 1_000, 0, end=200)
    translator = Translator([packed], shared=True)
    assert translator.to_destination(10).fit is Fit.INEXACT
    assert translator.to_destination(10).offset <= 10
    assert translator.to_destination(200) == (1_200, Fit.EXACT)
    assert translator.to_source(1_200) == (200, Fit.EXACT)
    assert translator.to_source(1_000).fit is Fit.INEXACT
    assert translator.to_source(1_000).offset == 0
    more = [packed, run(200, 1_200, 200, end=300)]
    assert Translator(more, shared=True).to_destination(250) == (1_250, Fit.EXACT), "nothing came between"
    assert Translator(more, shared=True, log_end=1_250).to_destination(250).fit is Fit.INEXACT


def test_a_map_with_two_hundred_thousand_gaps_takes_no_time_of_its_square() -> None:
    """As a rule makes that keeps every second record: it had taken an hour, now a second."""
    runs, each = [], 50_000
    for number in range(4):
        first = number * (each + 1)
        gaps = tuple(Gap(first + n, 2 * (first + n)) for n in range(1, each + 1))
        runs.append(run(2 * first, first, first, gaps, end=first + each + 1))
    translator = Translator(runs, written=4 * (each + 1))
    for record in (0, 1, 77_777, 200_000):
        assert translator.to_destination(2 * record) == (record, Fit.EXACT)
        assert translator.to_source(record + 1) == (2 * record + 1, Fit.EXACT)
    assert translator.pieces(150_000, 150_002) == [(150_000, 300_000, 1), (150_001, 300_002, 1)]


@pytest.mark.parametrize("lag", [0, 1, 1_600, 999_999])
def test_a_million_records_and_a_group_behind(lag: int) -> None:
    """KIP-1292's example: nothing is read twice, nothing is skipped."""
    translator = Translator([run(7, 0, 0, end=1_000_000)])
    assert translator.to_destination(1_000_007 - lag) == (1_000_000 - lag, Fit.EXACT)
