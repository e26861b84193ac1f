"""Stretches of a link's records of which a rebuilt map does not know the source offsets. Pure."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import NamedTuple

from strait.state.schema import OffsetMapping


class UnknownStretch(NamedTuple):
    """Records from number ``first`` up to ``end`` (exclusive), at source offsets from ``source_from`` up to
    ``source_end``; ``first`` -1: all that come before ``end``."""

    first: int
    end: int
    source_from: int
    source_end: int

    def covers(self, records: int) -> bool:
        """The source offset after so many records is unknown."""
        return self.first < records <= self.end

    def covers_source(self, offset: int) -> bool:
        """How many records come before this source offset is unknown."""
        return self.source_from < offset < self.source_end


def unknown_stretches(runs: Sequence[OffsetMapping], after: Callable[[int], int]) -> list[UnknownStretch]:
    """Those before each run that says so, in order.

    Args:
        after: from a known number of records to the source offset after them.
    """
    found = []
    known, known_before, base = -1, -1, -1  # by runs up to the present base, and by those before it
    for run in sorted(runs, key=attrgetter("sequence_base")):
        if run.sequence_base > base:
            known_before, base = known, run.sequence_base
        known = max(known, run.sequence_end)
        if run.after_unknown and known_before < run.sequence_base:
            source_from = after(known_before) if known_before >= 0 else -1
            found.append(UnknownStretch(known_before, run.sequence_base, source_from, run.source_base))
    return found
