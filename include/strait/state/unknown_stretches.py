"""Stretches of a link's records of which a rebuilt map does not know the source offsets. Pure."""

from collections.abc import Callable, Sequence
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
    for run in sorted((run for run in runs if run.after_unknown), key=lambda run: run.sequence_base):
        known = max((one.sequence_end for one in runs if one.sequence_base < run.sequence_base), default=-1)
        if known < run.sequence_base:
            source_from = after(known) if known >= 0 else -1
            found.append(UnknownStretch(known, run.sequence_base, source_from, run.source_base))
    return found
