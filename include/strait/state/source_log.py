"""Conversion between the number of a link's record and its source offset, by the offset map. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from operator import itemgetter
from typing import NamedTuple

from strait.state.destination_log import Found
from strait.state.offset_map import Gap, gaps_of, newest_first
from strait.state.schema import OffsetMapping

_NOWHERE = Gap(1 << 62, 1 << 62)


class _Dispute(NamedTuple):
    """Contradictory entries, for the records from ``first`` up to one that a checkpoint has confirmed.

    Attributes:
        shift: minimum difference between a record's source offset and its number.
        end: number and source offset of the confirmed record.
    """

    first: int
    shift: int
    end: Gap

    def covers(self, records: int) -> bool:
        return self.first < records <= self.end.sequence

    def covers_source(self, offset: int) -> bool:
        return self.first + self.shift < offset <= self.end.source


class _Step(NamedTuple):
    """The source was read again from offset ``to.source``, which holds record ``to.sequence``. Records from number
    ``first`` up to that one had source offsets from ``to.source`` on before."""

    first: int
    to: Gap


class SourceLog:
    """The source of a partition: which offset holds which of the link's records. Takes time in proportion to the gaps."""

    def __init__(self, runs: Sequence[OffsetMapping], written: int, *, compacted: bool) -> None:
        words, settled = _words(_without_passed(runs), written)
        self._anchors = [words[0]]  # the difference changes at each; ascending in both coordinates
        self._disputes: list[_Dispute] = []
        self._steps: list[_Step] = []
        open_dispute: _Dispute | None = None
        before = words[0]
        for word in words[1:]:
            last = self._anchors[-1]
            if word in settled:
                if open_dispute:
                    self._disputes.append(open_dispute._replace(end=word))
                    open_dispute = None
                if _shift(word) < _shift(last):
                    self._steps.append(_Step(self.records_before(word.source).number, word))
                while self._anchors and (last.source >= word.source or last.sequence >= word.sequence):
                    self._anchors.pop()
                    last = self._anchors[-1] if self._anchors else last
                if not self._anchors or _shift(last) != _shift(word):
                    self._anchors.append(word)
            else:
                doubled = word.sequence == before.sequence and word != before
                if doubled or _shift(word) < _shift(last) or (compacted and _shift(word) > _shift(last)):
                    first = min(word.sequence, self.records_before(word.source).number)
                    opened = open_dispute or _Dispute(first, _shift(last), _NOWHERE)
                    lower = min(opened.shift, _shift(word))
                    open_dispute = opened._replace(first=min(opened.first, first), shift=lower)
                if _shift(word) > _shift(last):  # the furthest applies: then the fewest records come before an offset
                    while self._anchors and self._anchors[-1].sequence >= word.sequence:
                        self._anchors.pop()
                    self._anchors.append(word)
            before = word
        if open_dispute:
            self._disputes.append(open_dispute)

    @property
    def first(self) -> int:
        return self._anchors[0].source

    def records_before(self, offset: int) -> Found:
        """Return how many of the link's records come before a source offset."""
        at = max(0, bisect_right(self._anchors, offset, key=itemgetter(1)) - 1)
        anchor, *later = self._anchors[at : at + 2]
        number = anchor.sequence + max(0, offset - anchor.source)
        number = min([number, *(following.sequence for following in later)])
        return Found(number, not any(dispute.covers_source(offset) for dispute in self._disputes))

    def run_end(self, offset: int, written: int) -> int:
        """Return the end of the offsets, from this one on, that each hold one of the first ``written`` records."""
        at = bisect_right(self._anchors, offset, key=itemgetter(1)) - 1
        if at < 0 or self._disputes or self._steps:
            return offset
        following = [it.sequence for it in self._anchors[at + 1 : at + 2]]
        return max(offset, min([written, *following]) + _shift(self._anchors[at]))

    def pieces(self, first: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield number, source offset and count of each stretch of consecutive records in [``first``, ``end``)."""
        at = max(0, bisect_right(self._anchors, first, key=itemgetter(0)) - 1)
        for anchor, following in pairwise(chain(islice(self._anchors, at, None), (_NOWHERE,))):
            low, high = max(first, anchor.sequence), min(end, following.sequence)
            if low < high:
                yield low, low + _shift(anchor), high - low
            if following.sequence >= end:
                return

    def unclear(self) -> list[tuple[int, int]]:
        """Return the numbers [first, end) of records whose source offsets are not exact."""
        disputed = [(it.first, it.end.sequence) for it in self._disputes]
        return disputed + [(step.first, step.to.sequence) for step in self._steps]

    def after(self, records: int) -> Found:
        """Return the next source offset to read after that many of the link's records."""
        possible = [step.to.source for step in self._steps if step.first < records <= step.to.sequence]
        possible += [min(records + it.shift, it.end.source) for it in self._disputes if it.covers(records)]
        if possible:
            return Found(min(possible), exact=False)
        at = bisect_right(self._anchors, records - 1, key=itemgetter(0)) - 1
        if at < 0:
            return Found(self.first, exact=True)
        return Found(records + _shift(self._anchors[at]), exact=True)


def _without_passed(runs: Sequence[OffsetMapping]) -> list[OffsetMapping]:
    """Return the segments without those that only record that nothing is to be copied before an offset, if another one has
    the next record, after that offset."""
    highest: dict[int, int] = {}
    for run in runs:
        highest[run.sequence_base] = max(run.source_base, highest.get(run.sequence_base, 0))

    def is_passed(run: OffsetMapping) -> bool:
        bare = not run.gaps and run.sequence_end == run.sequence_base and run.checkpoint_at_ms > 0
        return bare and run.source_base < highest[run.sequence_base]

    return [run for run in runs if not is_passed(run)]


def _shift(word: Gap) -> int:
    """Return the difference between a record's source offset and its number."""
    return word.source - word.sequence


def _words(runs: Sequence[OffsetMapping], written: int) -> tuple[list[Gap], set[Gap]]:
    """Return all bases and gaps that no later checkpoint has replaced; and those that a checkpoint has confirmed."""
    confirming = [run for run in runs if run.sequence_end > run.sequence_base]
    confirmed = _Ranges()
    settled: set[Gap] = set()
    for newest in newest_first(confirming):
        known = gaps_of(newest, behind=newest.sequence_end)
        settled.update(gap for gap in known if gap.sequence not in confirmed)
        confirmed.add(newest.sequence_base, newest.sequence_end)
    open_words = {gap for run in runs for gap in gaps_of(run, behind=written) if gap.sequence not in confirmed}
    return sorted(settled | open_words) or [Gap(runs[0].sequence_base, runs[0].source_base)], settled


class _Ranges:
    """A set of numbers, as ranges that neither overlap nor touch: those of a long map's checkpoints are one range."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __contains__(self, number: int) -> bool:
        at = bisect_right(self._starts, number) - 1
        return at >= 0 and number < self._ends[at]

    def add(self, first: int, end: int) -> None:
        low, high = bisect_left(self._ends, first), bisect_right(self._starts, end)
        if low < high:
            first, end = min(first, self._starts[low]), max(end, self._ends[high - 1])
        self._starts[low:high], self._ends[low:high] = [first], [end]
