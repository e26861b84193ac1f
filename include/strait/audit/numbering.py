"""The number of each record of a log, by which the records of both sides are paired. Pure.

For a link's copies it is the record's sequence number. On the source it follows from the offset map; on the destination
it is in the batch's header, since a link numbers the records that it writes. For copies with equal offsets it is the
offset.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, Protocol

import numpy as np

from strait.state.offset_map import full_sequence
from strait.wire.batch import Batch

Array = np.ndarray[Any, np.dtype[Any]]

UNNUMBERED = -1


class Span(NamedTuple):
    """The numbers [``first``, ``end``) that a batch covers. ``whole``: it has exactly one record of each of them and no
    others."""

    first: int
    end: int
    whole: bool


class Numbering(Protocol):
    """The numbers of one side's records."""

    def span(self, batch: Batch, *, intact: bool) -> Span | None:
        """Return the numbers that the batch covers; None: its records have none."""

    def numbers(self, batch: Batch, offsets: Array, first: int) -> Array:
        """Return the number of each record at these offsets; -1: it has none.

        Args:
            first: the batch's first number.
        """


class Piece(NamedTuple):
    """Records from ``number`` on, at consecutive source offsets from ``source`` on."""

    number: int
    source: int
    records: int


class Pieces:
    """Pieces that ascend in both coordinates, at 24 bytes each: a rule that filters makes as many as records."""

    def __init__(self, pieces: Iterable[tuple[int, int, int]] = ()) -> None:
        table = np.fromiter(chain.from_iterable(pieces), np.int64).reshape(-1, 3)
        self.numbers, self.sources, self.records = (np.ascontiguousarray(column) for column in table.T)

    def __iter__(self) -> Iterator[Piece]:
        yield from map(Piece, self.numbers.tolist(), self.sources.tolist(), self.records.tolist())


class MappedSource:
    """The source of a link: offsets that the map pairs with numbers. Offsets in between hold no copied record."""

    def __init__(self, pieces: Pieces) -> None:
        self._numbers = pieces.numbers
        self._starts = pieces.sources
        self._sources: list[int] = pieces.sources.tolist()
        self._shifts = pieces.numbers - pieces.sources
        self._ends = pieces.sources + pieces.records

    def span(self, batch: Batch, *, intact: bool) -> Span | None:
        low, high = batch.base_offset, batch.next_offset
        at = bisect_right(self._sources, low) - 1
        if at >= 0 and low < self._ends[at]:
            first = low + int(self._shifts[at])
            if high <= self._ends[at]:
                return Span(first, first + high - low, batch.whole)
        else:
            at += 1
            if at == len(self._sources) or self._sources[at] >= high:
                return None
            first = int(self._numbers[at])
        last = bisect_left(self._sources, high) - 1
        end = min(high, int(self._ends[last])) + int(self._shifts[last])
        return Span(first, end, whole=False)

    def numbers(self, batch: Batch, offsets: Array, first: int) -> Array:
        if not len(self._starts):
            return np.full(len(offsets), UNNUMBERED, np.int64)
        at = np.searchsorted(self._starts, offsets, "right") - 1
        inside = (at >= 0) & (offsets < self._ends[at])
        return np.where(inside, offsets + self._shifts[at], UNNUMBERED)


class StampedCopy:
    """The destination of a link: numbers are in the headers of the link's batches.

    Args:
        producer_id: the link's.
        near: the number of a record close to the first one.
        shift: difference between a record's number and its offset, if no other producer writes to the partition.
            Batches whose header is damaged are numbered by it; if it is None, they follow the batch before.
    """

    def __init__(self, producer_id: int, near: int, shift: int | None) -> None:
        self._producer_id = producer_id
        self._near = near
        self._shift = shift
        self._end = near

    def span(self, batch: Batch, *, intact: bool) -> Span | None:
        first = self._first(batch, intact=intact)
        return None if first is None else Span(first, first + batch.last_offset_delta + 1, batch.whole)

    def numbers(self, batch: Batch, offsets: Array, first: int) -> Array:
        return offsets - batch.base_offset + first

    def _first(self, batch: Batch, *, intact: bool) -> int | None:
        if not intact:
            return self._end if self._shift is None else batch.base_offset + self._shift
        if batch.producer_id != self._producer_id or batch.base_sequence < 0:
            return None
        first = full_sequence(batch.base_sequence, near=self._near)
        self._near, self._end = first, first + batch.last_offset_delta + 1
        return first


class SameOffsets:
    """A side whose records are paired by their offsets."""

    def span(self, batch: Batch, *, intact: bool) -> Span | None:
        return Span(batch.base_offset, batch.next_offset, batch.whole)

    def numbers(self, batch: Batch, offsets: Array, first: int) -> Array:
        return offsets
