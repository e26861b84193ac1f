"""Ranges of a link's records whose source offsets are unknown in a rebuilt offset map. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from strait.state.schema import OffsetMapping


class UnknownStretch(NamedTuple):
    """Records with numbers [``first``, ``end``), at source offsets [``source_from``, ``source_end``); ``first`` -1: all
    records before ``end``."""

    first: int
    end: int
    source_from: int
    source_end: int

    def covers(self, records: int) -> bool:
        """Return whether the source offset after this many records is unknown."""
        return self.first < records <= self.end

    def covers_source(self, offset: int) -> bool:
        """Return whether the number of records before this source offset is unknown."""
        return self.source_from < offset < self.source_end


def unknown_stretches(runs: Sequence[OffsetMapping], after: Callable[[int], int]) -> list[UnknownStretch]:
    """Return the unknown ranges, in order: one before each segment that is marked ``after_unknown``.

    Args:
        after: returns the source offset after a known number of records.
    """
    found = []
    known, known_before, base = -1, -1, -1  # by segments up to the current base, and by those before it
    for run in sorted(runs, key=attrgetter("sequence_base")):
        if run.sequence_base > base:
            known_before, base = known, run.sequence_base
        known = max(known, run.sequence_end)
        if run.after_unknown and known_before < run.sequence_base:
            source_from = after(known_before) if known_before >= 0 else -1
            found.append(UnknownStretch(known_before, run.sequence_base, source_from, run.source_base))
    return found


def without(whole: tuple[int, int], parts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the rest of a range without the parts."""
    at, end = whole
    for first, behind in sorted(parts):
        if behind > at and first < end:
            if first > at:
                yield at, first
            at = behind
    if at < end:
        yield at, end
