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
    assert translator.to_source(40) == (0, Fit.EXACT)


@pytest.mark.parametrize("lag", [0, 1, 1_600, 999_999])
def test_a_million_records_and_a_group_behind(lag: int) -> None:
    """KIP-1292's example: nothing is read twice, nothing is skipped."""
    translator = Translator([run(7, 0, 0, end=1_000_000)])
    assert translator.to_destination(1_000_007 - lag) == (1_000_000 - lag, Fit.EXACT)
