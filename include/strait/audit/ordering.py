"""Compares two logs whose records can be paired by their order alone, such as those of MirrorMaker 2. Pure.

Both logs are rows of record digests, which are aligned like two texts: equal stretches in order, and between them records
that one side lacks, that were changed, or exchanged. The rows are read in step, so the memory does not grow with the logs.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from strait.audit.comparing import Compared, Explain
from strait.audit.feed import END, Feed, Item, Options, Rows, Side, no_rows
from strait.audit.findings import NOWHERE, Difference, Kind
from strait.audit.judging import Leftovers, contents
from strait.audit.numbering import SameOffsets
from strait.wire.digests import Array

WINDOWS = (64, 4096, 262_144)
"""Records in which both logs must agree again after a difference; the larger ones are tried if a smaller one fails."""
IN_A_ROW = 3
"""Consecutive equal records that end a difference."""
_CANDIDATES = 256
_CONTEXT = 4096
_AT_ONCE = 65_536


class Edges(NamedTuple):
    """Known properties of the ends of both logs.

    Attributes:
        source_start, copy_start: the first offsets that were not deleted.
        by_time: the compared range starts at a time, so that a few records at its start may be in one range only.
        closed: both ranges end at the same record: further records of the source are missing.
        source_range, copy_range: the offsets to compare; batches may reach beyond them.
    """

    source_start: int
    copy_start: int
    by_time: bool = False
    closed: bool = False
    source_range: tuple[int, int] = (0, END)
    copy_range: tuple[int, int] = (0, END)


def compare_in_order(
    source: Iterator[Item], copy: Iterator[Item], options: Options, edges: Edges, explain: Explain
) -> tuple[Compared, int]:
    """Compare two logs by the order of their records. Return the result, and how many records of the source follow the
    last one that the destination has: these may not be replicated yet."""
    here = _Row(Feed("source", source, SameOffsets(), options), options, edges.source_range)
    there = _Row(Feed("destination", copy, SameOffsets(), options), options, edges.copy_range)
    return _Alignment(here, explain, edges).run(there)


class _Row:
    """The records of one log that are not aligned yet."""

    def __init__(self, feed: Feed, options: Options, offsets: tuple[int, int]) -> None:
        self.feed = feed
        self._first, self._end = offsets
        self._parts: list[Rows] = []
        self._count = 0
        self._rows = no_rows(options)

    def fill(self, count: int) -> bool:
        """Read until there are ``count`` records, or the log ends; return whether there are that many."""
        missing = count - len(self._rows)
        parts = []
        while missing > 0 and self.feed.next is not None:
            rows = self.feed.rows(self.feed.next)
            parts.append(rows.where((rows.offsets >= self._first) & (rows.offsets < self._end)))
            missing -= len(parts[-1])
            self.feed.advance()
        if parts:
            self._rows = Rows.joined([self._rows, *parts])
        return missing <= 0

    @property
    def digests(self) -> Array:
        return self._rows.digests

    def take(self, count: int) -> Rows:
        """Take the first records out."""
        taken = Rows(*(column[:count] for column in self._rows))
        self._rows = Rows(*(column[count:] for column in self._rows))
        return taken


class _Alignment:
    def __init__(self, source: _Row, explain: Explain, edges: Edges) -> None:
        self._source = source
        self._explain = explain
        self._edges = edges
        self._result = Compared()
        self._aligned = False
        self._context: list[Array] = []  # the source's last digests, by which a duplicate is recognized
        self._left = Leftovers()
        self._digests = blake2b(digest_size=16), blake2b(digest_size=16)

    def run(self, copy: _Row) -> tuple[Compared, int]:
        source, result = self._source, self._result
        tail = 0
        while True:
            source.fill(_AT_ONCE)
            copy.fill(_AT_ONCE)
            for row in (source, copy):
                row.feed.report_damage(result.tally.add)
            count = _equal(source.digests, copy.digests)
            if count:
                self._take_equal(source.take(count), copy.take(count))
            elif not len(source.digests) or not len(copy.digests):
                if not len(source.digests) and not len(copy.digests):
                    break
                if len(source.digests) and not self._edges.closed and (self._aligned or not copy.feed.bytes):
                    tail += self._take_tail(source.take(len(source.digests)))
                else:
                    self._take_different(source.take(len(source.digests)), copy.take(len(copy.digests)))
            else:
                i, j = self._agreement(source, copy)
                at_end = j == len(copy.digests) and copy.feed.next is None
                self._take_different(source.take(min(i, j) if at_end else i), copy.take(j))
        self._name()
        feeds = source.feed, copy.feed
        result.source_bytes, result.copy_bytes = (feed.bytes for feed in feeds)
        result.source_batches, result.copy_batches = (feed.batches for feed in feeds)
        result.digests = self._digests[0].hexdigest(), self._digests[1].hexdigest()
        return result, tail

    def _take_equal(self, here: Rows, there: Rows) -> None:
        self._aligned = True
        self._result.records += len(here)
        self._result.by_record += len(here)
        self._remember(here, there)

    def _remember(self, here: Rows, there: Rows) -> None:
        for digest, rows in zip(self._digests, (here, there), strict=True):
            digest.update(np.ascontiguousarray(rows.digests).tobytes())
        self._context = [np.concatenate([*self._context, here.digests])[-_CONTEXT:]]

    def _take_tail(self, here: Rows) -> int:
        self._remember(here, here.where(np.zeros(len(here), bool)))
        return len(here)

    def _agreement(self, source: _Row, copy: _Row) -> tuple[int, int]:
        """Return how many records of each side come before the next ones that agree."""
        for window in WINDOWS:
            whole = [row.fill(window + IN_A_ROW) for row in (source, copy)]
            found = _resynchronized(source.digests, copy.digests, window)
            if found is not None:
                return found
            if not any(whole):
                break
        return min(window, len(source.digests)), min(window, len(copy.digests))

    def _take_different(self, here: Rows, there: Rows) -> None:
        lead, self._aligned = not self._aligned, True
        self._result.records += len(here)
        if len(here) == len(there):
            for at in range(len(here)):
                self._left.pair(here, at, there, at)
        else:
            self._take_unpaired(here, there, lead=lead)
        self._remember(here, there)
        if self._left.are_many:
            self._name()

    def _take_unpaired(self, here: Rows, there: Rows, *, lead: bool) -> None:
        source_start, copy_start, by_time, *_ = self._edges
        if lead and (copy_start > 0 or by_time):
            here = self._deleted(here, "source")
        if lead and (source_start > 0 or by_time):
            there = self._deleted(there, "destination")
        for i in range(len(here)):
            self._left.lose(here, i)
        known = contents(*self._context, here.digests) if len(there) else set()
        for j in range(len(there)):
            self._left.gain(there, j, doubles=there.digests[j].tobytes() in known)

    def _deleted(self, rows: Rows, side: Side) -> Rows:
        """Count records before the first one that both logs hold, which the other side has deleted."""
        for offset in rows.offsets.tolist():
            self._add("deleted", *((offset, NOWHERE) if side == "source" else (NOWHERE, offset)))
        return rows.where(np.zeros(len(rows), bool))

    def _name(self) -> None:
        for one in self._left.named():
            self._add(*one)

    def _add(self, kind: Kind, source: int, copy: int) -> None:
        explained = "" if kind == "deleted" else self._explain(kind, source, copy)
        self._result.tally.add(Difference(kind, source, copy, 1, explained))


def _equal(here: Array, there: Array) -> int:
    """Return how many records at the start of both rows are equal."""
    count = min(len(here), len(there))
    wrong = np.flatnonzero(here[:count] != there[:count])
    return int(wrong[0]) if len(wrong) else count


def _resynchronized(here: Array, there: Array, window: int) -> tuple[int, int] | None:
    """Return the positions closest to the start from which on some records in a row are equal; None: there are none
    within the window."""
    x, y = here[:window], there[:window]
    if not len(x) or not len(y):
        return None
    wanted, known = _keys(x), _keys(y)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known, wanted, sorter=order), len(order) - 1)
    places = order[at]
    rows = np.flatnonzero(known[places] == wanted)
    cost = rows + places[rows]
    for which in np.argsort(cost, kind="stable")[:_CANDIDATES].tolist():
        i, j = int(rows[which]), int(places[rows[which]])
        count = min(IN_A_ROW, len(here) - i, len(there) - j)
        if (here[i : i + count] == there[j : j + count]).all():
            return i, j
    return None


def _keys(digests: Array) -> Array:
    """Return 64 bits of each digest."""
    if digests.dtype.kind != "V":
        return digests
    return np.frombuffer(np.ascontiguousarray(digests), np.uint64).reshape(len(digests), -1)[:, 0]
