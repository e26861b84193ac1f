"""Committed offsets between source and destination, exact at any lag. Pure.

A committed offset is the offset of the next record to consume. Translated, it is the offset after the copy of the last
record before it. So no record is skipped, neither one of the link nor one that another producer wrote in between, and
none is read twice.

The map is exact wherever its entries agree. Entries since the last checkpoint disagree if a compacted source showed
other records to two writers of the link. And if other producers write into the destination by design, the map knows
only at its checkpoints how many of their records came before. Then the result is the earliest one that is possible: it
may be too early, never too late, and says so. If a source was truncated and replicated again from its start, its
offsets are those of the records that it has now.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from operator import attrgetter, itemgetter
from typing import NamedTuple

from strait.state.offset_map import Gap, covering, gaps_of, newest_checkpoint, places
from strait.state.schema import OffsetMapping


class Fit(StrEnum):
    """How well a translated offset is known."""

    EXACT = "exact"
    AHEAD = "ahead"  # after the last replicated record: the result is the end of what is replicated, and grows
    BEFORE_START = "before_start"  # the record at the offset was never replicated: the result is the first that was
    INEXACT = "inexact"  # the map cannot tell: the result may be too early, never too late


class Translated(NamedTuple):
    """An offset on the other cluster, and how well it is known."""

    offset: int
    fit: Fit


class Translator:
    """Translates the offsets of one partition.

    Args:
        runs: the map's entries for the two topics as they are now, in any order; at least one.
        written: number of records that the link is known to have written to the destination partition.
        position: the next source offset that the link is known to replicate; -1: not known.
        shared: other producers write into the destination by design.
    """

    def __init__(
        self, runs: Iterable[OffsetMapping], written: int = 0, position: int = -1, *, shared: bool = False
    ) -> None:
        self._runs = sorted(runs, key=lambda run: (run.sequence_base, run.sequence_end, run.destination_base))
        self._written = max(written, self._runs[0].sequence_base, *(run.sequence_end for run in self._runs))
        begun = [run for run in self._runs if run.sequence_base <= self._written]
        self._anchors, self._agreed = _anchors(begun, self._written)
        self._sources = [anchor.source for anchor in self._anchors]
        self._sequences = [anchor.sequence for anchor in self._anchors]
        self._log: _OwnLog | _SharedLog = _SharedLog(begun) if shared else _OwnLog(begun)
        self._position = max(position, self._source_after(self._written))

    def to_destination(self, offset: int) -> Translated:
        """The destination's committed offset for a committed offset of the source."""
        at = bisect_left(self._sources, offset) - 1  # the last anchor before it
        if at < 0:
            fit = Fit.EXACT if offset == self._sources[0] else Fit.BEFORE_START
            return Translated(self._log.after(self._sequences[0]).number, fit)
        records = self._sequences[at] + offset - self._sources[at]
        records = min(records, *self._sequences[at + 1 : at + 2], self._written)
        found = self._log.after(records)
        return Translated(found.number, Fit.AHEAD if offset > self._position else self._fit(records, found))

    def to_source(self, offset: int) -> Translated:
        """The source's committed offset for a committed offset of the destination."""
        found = self._log.records_before(offset)
        if found.number < self._sequences[0]:
            return Translated(self._sources[0], Fit.BEFORE_START)
        records = min(found.number, self._written)
        ahead = offset > self._log.after(self._written).number and not isinstance(self._log, _SharedLog)
        return Translated(self._source_after(records), Fit.AHEAD if ahead else self._fit(records, found))

    def _fit(self, records: int, found: "_Found") -> Fit:
        return Fit.EXACT if found.exact and records <= self._agreed else Fit.INEXACT

    def _source_after(self, records: int) -> int:
        """Where the source is read on after that many of the link's records."""
        if records > self._agreed:
            return min(places(self._runs, records))
        at = bisect_left(self._sequences, records) - 1
        return self._sources[0] if at < 0 else self._sources[at] + records - self._sequences[at]


class _Found(NamedTuple):
    number: int
    exact: bool


class _OwnLog:
    """A destination partition that only the link writes to, or in which the map says where others did: segments in
    which record number and offset differ by the same."""

    def __init__(self, runs: Sequence[OffsetMapping]) -> None:
        self._bases = sorted({run.sequence_base for run in runs})
        covered = (covering(runs, base) for base in self._bases)
        self._offsets = [
            run.destination_base + base - run.sequence_base for run, base in zip(covered, self._bases, strict=True)
        ]

    def after(self, records: int) -> _Found:
        """The offset after that many of the link's records."""
        at = bisect_left(self._bases, records) - 1
        return _Found(self._offsets[0] if at < 0 else self._offsets[at] + records - self._bases[at], exact=True)

    def records_before(self, offset: int) -> _Found:
        """How many of the link's records come before an offset; fewer than the first segment begins with: none."""
        at = bisect_left(self._offsets, offset) - 1
        if at < 0:
            return _Found(self._bases[0] - (offset < self._offsets[0]), exact=True)
        return _Found(min(self._bases[at] + offset - self._offsets[at], *self._bases[at + 1 : at + 2]), exact=True)


class _SharedLog:
    """One that other producers write to as well. The map knows at its checkpoints only at which offset the next record
    was due; between two of them others' records may have come before any of the link's. The earliest offset that is
    possible counts, and the fewest records."""

    def __init__(self, runs: Sequence[OffsetMapping]) -> None:
        known = {
            run.sequence_end: run for run in sorted(runs, key=_checkpointed) if run.sequence_end > run.sequence_base
        }
        points = [(end, run.destination_base + end - run.sequence_base) for end, run in sorted(known.items())]
        first = runs[0].sequence_base
        self._points = [(first, 0), *(point for point in points if point[0] > first)]

    def after(self, records: int) -> _Found:
        at = max(0, bisect_right(self._points, records, key=itemgetter(0)) - 1)
        number, offset = self._points[at]
        return _Found(offset + records - number, (records == number and at > 0) or self._unshifted(at))

    def records_before(self, offset: int) -> _Found:
        at = bisect_right(self._points, offset, key=itemgetter(1)) - 1
        number, known = self._points[at]
        if offset == known or at + 1 == len(self._points):
            return _Found(number, exact=offset == known)
        later, there = self._points[at + 1]
        return _Found(max(number, later - max(0, there - offset)), self._unshifted(at))

    def _unshifted(self, at: int) -> bool:
        """No record of others came between this checkpoint and the next."""
        if at + 1 == len(self._points):
            return False
        (number, offset), (later, there) = self._points[at : at + 2]
        return there - offset == later - number


def _checkpointed(run: OffsetMapping) -> int:
    return run.checkpoint_at_ms


def _anchors(runs: Sequence[OffsetMapping], written: int) -> tuple[list[Gap], int]:
    """Records from which on source offset and number differ by more than before, and up to which number of records all
    entries agree."""
    words, settled = _words(runs, written)
    found: list[Gap] = []
    agreed = written
    for word in words:
        further = 1 if not found else word.source - word.sequence - (found[-1].source - found[-1].sequence)
        if further < 0 and word in settled and found[-1] in settled:
            found = [word]  # the source was truncated and replicated again
            continue
        if further < 0 or (further > 0 and found and word.sequence == found[-1].sequence):
            agreed = min(agreed, word.sequence)
        if further > 0:
            found = [*found[: bisect_left(found, word.sequence, key=attrgetter("sequence"))], word]
    return found, agreed


def _words(runs: Sequence[OffsetMapping], written: int) -> tuple[list[Gap], set[Gap]]:
    """What entries say, without what a later checkpoint has replaced; and what a checkpoint has confirmed."""
    left = [run for run in runs if run.sequence_end > run.sequence_base]
    confirmed: list[tuple[int, int]] = []
    settled: set[Gap] = set()
    while left:
        newest = newest_checkpoint(left)
        left.remove(newest)
        known = gaps_of(newest, behind=newest.sequence_end)
        settled |= {gap for gap in known if not _within(gap.sequence, confirmed)}
        confirmed.append((newest.sequence_base, newest.sequence_end))
    open_words = {gap for run in runs for gap in gaps_of(run, behind=written) if not _within(gap.sequence, confirmed)}
    return sorted(settled | open_words) or [Gap(runs[0].sequence_base, runs[0].source_base)], settled


def _within(sequence: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= sequence < end for first, end in ranges)
