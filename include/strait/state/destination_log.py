"""Conversion between the number of a link's record and its destination offset, by the offset map. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from strait.state.offset_map import covering
from strait.state.schema import OffsetMapping


class Found(NamedTuple):
    """A number, and whether it is exact."""

    number: int
    exact: bool


class OwnLog:
    """A destination partition that only the link writes to: in each segment the difference between record number and
    offset is constant."""

    def __init__(self, runs: Sequence[OffsetMapping]) -> None:
        self._bases = sorted({run.sequence_base for run in runs})
        covered = (covering(runs, base) for base in self._bases)
        self._offsets = [
            run.destination_base + base - run.sequence_base for run, base in zip(covered, self._bases, strict=True)
        ]

    def after(self, records: int) -> Found:
        """Return the offset after that many of the link's records."""
        at = bisect_right(self._bases, records - 1) - 1
        return Found(self._offsets[0] if at < 0 else self._offsets[at] + records - self._bases[at], exact=True)

    def records_before(self, offset: int) -> Found:
        """Return how many of the link's records come before an offset; one less than the first segment's base: none."""
        at = bisect_right(self._offsets, offset - 1) - 1
        if at < 0:
            return Found(self._bases[0] - (offset < self._offsets[0]), exact=True)
        return Found(min([self._bases[at] + offset - self._offsets[at], *self._bases[at + 1 : at + 2]]), exact=True)


class SharedLog:
    """A destination partition that other producers write to as well.

    The map has the offset of the next record only at its checkpoints; between two of them other producers' records may
    have come before any of the link's. The results are the earliest possible offset, and the fewest records.
    """

    def __init__(self, runs: Sequence[OffsetMapping], log_end: int) -> None:
        self._points = [(runs[0].sequence_base, 0)]
        for run in sorted(runs, key=lambda run: run.checkpoint_at_ms):
            number = run.sequence_end
            offset = run.destination_base + number - run.sequence_base
            if number <= max(run.sequence_base, self._points[0][0]) or 0 <= log_end < offset:
                continue
            # An older checkpoint is no longer true if the log was truncated since.
            older = [
                point
                for point in self._points
                if (point[0] < number and point[1] - point[0] <= offset - number) or point == self._points[0]
            ]
            self._points = [*older, (number, offset)]

    def after(self, records: int) -> Found:
        at = max(0, bisect_right(self._points, records, key=itemgetter(0)) - 1)
        number, offset = self._points[at]
        return Found(offset + records - number, (records == number and at > 0) or self._unshifted(at))

    def records_before(self, offset: int) -> Found:
        at = bisect_right(self._points, offset, key=itemgetter(1)) - 1
        number, known = self._points[at]
        if at + 1 == len(self._points):
            return Found(number, exact=offset == known and at > 0)
        later, there = self._points[at + 1]
        exact = (offset == known and at > 0) or self._unshifted(at)
        return Found(max(number, later - max(0, there - offset)), exact)

    def checkpoints(self) -> list[tuple[int, int]]:
        return [(offset, number) for number, offset in self._points[1:]]

    def _unshifted(self, at: int) -> bool:
        """Return whether no record of other producers came between this checkpoint and the next."""
        if at + 1 == len(self._points):
            return False
        (number, offset), (later, there) = self._points[at : at + 2]
        return there - offset == later - number
