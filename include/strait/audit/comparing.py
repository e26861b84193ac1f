"""Compares two logs whose records are paired by number. Pure.

Batches are compared as they are, without decompressing them. Only if two batches have other bounds or other bytes, the
records up to the next common bound are compared one by one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple

import numpy as np

from strait.audit.feed import END, Evaluated, Feed, Item, Options, Part, Rows, no_rows
from strait.audit.findings import NOWHERE, Difference, Kind, Tally
from strait.audit.judging import Leftovers, contents, paired
from strait.audit.numbering import UNNUMBERED, Numbering
from strait.wire.digests import Array

MOST_ROWS = 100_000
"""Records that are collected at most before they are compared: 5 MB on each side."""
_DIGEST_BYTES = 16
_OF_BATCH = Struct(">cqqI")
_OF_RECORDS = Struct(">cqq")


class Bounds(NamedTuple):
    """The records to compare: numbers [``first``, ``end``), and on the source offsets [``source_from``,
    ``source_to``)."""

    first: int
    end: int
    source_from: int = 0
    source_to: int = END


Explain = Callable[[Kind, int, int], str]
"""Returns the cause on record for a difference at a source offset and a destination offset, or ""."""


@dataclass
class Compared:
    """The result of a comparison.

    Attributes:
        records: of the source, with numbers.
        by_batch, by_record: of these, equal ones, by the way in which they were compared.
        digests: of everything that was compared, of the source and of the destination; equal if the contents are.
        newest_ms: the newest timestamp of the source; -1: there is none.
    """

    tally: Tally = field(default_factory=Tally)
    records: int = 0
    by_batch: int = 0
    by_record: int = 0
    source_bytes: int = 0
    copy_bytes: int = 0
    source_batches: int = 0
    copy_batches: int = 0
    digests: tuple[str, str] = ("", "")
    newest_ms: int = -1


class Sides(NamedTuple):
    """The items of both logs in order, and their numbering."""

    source: Iterator[Item | Evaluated]
    copy: Iterator[Item]
    source_numbers: Numbering
    copy_numbers: Numbering


def compare(
    sides: Sides, bounds: Bounds, options: Options, explain: Explain, owner: Callable[[int], str] | None = None
) -> Compared:
    """Compare both sides within the bounds. Batches that reach beyond the bounds are compared whole, and counted in
    part.

    Args:
        owner: returns the writer of a producer ID on the destination, if it is on record, or "".
    """
    return _Comparison(sides, bounds, options, explain, owner or (lambda _: "")).run()


class _Comparison:
    def __init__(
        self, sides: Sides, bounds: Bounds, options: Options, explain: Explain, owner: Callable[[int], str]
    ) -> None:
        self._bounds = bounds
        self._explain = explain
        self._owner = owner
        self._result = Compared()
        self._source = Feed("source", sides.source, sides.source_numbers, options)
        self._copy = Feed("destination", sides.copy, sides.copy_numbers, options)
        self._feeds = (self._source, self._copy)
        self._nothing = no_rows(options)
        self._pending: tuple[list[Rows], list[Rows]] = ([], [])
        self._is_pending = False
        self._pending_rows = 0
        self._pending_low = END  # the lowest number
        self._digests = blake2b(digest_size=_DIGEST_BYTES), blake2b(digest_size=_DIGEST_BYTES)
        self._left = Leftovers()

    def run(self) -> Compared:
        source, copy = self._feeds
        while source.next or copy.next:
            self._settle_asides()
            if self._is_pending and (source.at == copy.at or self._overflows(min(source.at, copy.at))):
                self._settle(min(source.at, copy.at))
            elif source.next and copy.next and self._take_equal(source.next, copy.next):
                source.advance()
                copy.advance()
            else:
                self._take(0 if source.at <= copy.at else 1)
        self._settle(END)
        self._settle_asides()
        self._name()
        result = self._result
        result.source_bytes, result.copy_bytes = source.bytes, copy.bytes
        result.source_batches, result.copy_batches = source.batches, copy.batches
        result.digests = self._digests[0].hexdigest(), self._digests[1].hexdigest()
        result.newest_ms = source.newest_ms
        return result

    def _take_equal(self, one: Part, other: Part) -> bool:
        """Count two batches of equal bytes; return False if they differ or cover other numbers."""
        if self._is_pending or one.span != other.span or not one.span.whole:
            return False
        if one.seen.fingerprint != other.seen.fingerprint:
            return False
        first, end = max(one.span.first, self._bounds.first), min(one.span.end, self._bounds.end)
        if first < end:
            self._result.records += end - first
            self._result.by_batch += end - first
            for digest, part in zip(self._digests, (one, other), strict=True):
                digest.update(_OF_BATCH.pack(b"b", first, end, part.seen.fingerprint.crc))
                digest.update(part.seen.fingerprint.strong)
        return True

    def _take(self, which: int) -> None:
        feed = self._feeds[which]
        if feed.next is not None:
            rows = self._within(feed.rows(feed.next), feed)
            self._pending[which].append(rows)
            self._is_pending = True
            self._pending_rows += len(rows)
            self._pending_low = min(self._pending_low, int(rows.numbers[0]) if len(rows) else END)
            feed.advance()

    def _overflows(self, below: int) -> bool:
        """Return whether too many records are pending, and some of them can be compared."""
        return self._pending_rows > MOST_ROWS and self._pending_low < below

    def _within(self, rows: Rows, feed: Feed) -> Rows:
        """Return the numbered rows within the bounds. Others of the source were not copied."""
        if feed is self._source:
            self._not_copied(rows.offsets[rows.numbers == UNNUMBERED])
        return rows.where((rows.numbers >= self._bounds.first) & (rows.numbers < self._bounds.end))

    def _settle(self, below: int) -> None:
        """Compare the pending records with numbers below a limit that both sides have reached."""
        here, there = (self._below(pending, below) for pending in self._pending)
        left = [rows for pending in self._pending for rows in pending]
        self._is_pending = bool(left)
        self._pending_rows = sum(map(len, left))
        self._pending_low = min((int(rows.numbers[0]) for rows in left), default=END)
        if not len(here) and not len(there):
            return
        self._result.records += len(here)
        for digest, rows in zip(self._digests, (here, there), strict=True):
            if len(rows):
                digest.update(_OF_RECORDS.pack(b"r", int(rows.numbers[0]), int(rows.numbers[-1])))
                digest.update(np.ascontiguousarray(rows.digests).tobytes())
        found = paired(here, there)
        self._result.by_record += len(here) - len(found.pairs) - len(found.lost)
        for i, j in found.pairs:
            self._left.pair(here, i, there, j)
        for i in found.lost:
            self._lose(here, i)
        known = contents(here.digests) if found.more else set()
        for j in found.more:
            self._gain(there, j, doubles=there.digests[j].tobytes() in known)
        if self._left.are_many:
            self._name()

    def _below(self, pending: list[Rows], below: int) -> Rows:
        """Take the rows with numbers below the limit out of the pending ones."""
        rows = Rows.joined([self._nothing, *pending])
        pending.clear()
        if len(rows) and rows.numbers[-1] >= below:
            pending.append(rows.where(rows.numbers >= below))
            rows = rows.where(rows.numbers < below)
        return rows

    def _lose(self, rows: Rows, i: int) -> None:
        hole = self._copy.hole_at(int(rows.numbers[i]))
        if hole:
            self._add("deleted" if hole == "deleted" else "missing", int(rows.offsets[i]), NOWHERE, "destination")
        else:
            self._left.lose(rows, i)

    def _gain(self, rows: Rows, j: int, *, doubles: bool) -> None:
        hole = self._source.hole_at(int(rows.numbers[j]))
        if hole:
            kind: Kind = "deleted" if hole == "deleted" else "unknown"
            self._add(kind, NOWHERE, int(rows.offsets[j]), "source" if kind == "deleted" else "source: unreadable")
        else:
            left_out = self._source.left_out.get(int(rows.numbers[j]), NOWHERE)
            self._left.gain(rows, j, doubles=doubles and left_out == NOWHERE, left_out=left_out)

    def _name(self) -> None:
        for one in self._left.named():
            self._add(*one, "the rule leaves it out" if one.kind == "extra" and one.source != NOWHERE else "")

    def _settle_asides(self) -> None:
        """Report batches that are damaged, without numbers, or whose numbers occurred before."""
        if not (self._source.has_asides or self._copy.has_asides):
            return
        for feed in self._feeds:
            feed.report_damage(self._tally)
        for part in self._source.outside:
            self._not_copied(self._source.offsets(part))
        self._source.outside.clear()
        for part in self._copy.outside:
            who = self._owner(part.batch.producer_id)
            self._tally(Difference("foreign", NOWHERE, part.batch.base_offset, part.batch.records, who))
        self._copy.outside.clear()
        for feed in self._feeds:
            for part in feed.again:
                self._again(feed, self._within(feed.rows(part), feed))
            feed.again.clear()

    def _again(self, feed: Feed, rows: Rows) -> None:
        """Take records whose numbers were passed already: the log has them twice, or in another order."""
        for at in range(len(rows)):
            if feed is self._source:
                self._add("duplicate", int(rows.offsets[at]), NOWHERE, "source")
            else:
                self._left.gain(rows, at, doubles=True)

    def _not_copied(self, offsets: Array) -> None:
        """Report committed records of the source that have no number."""
        inside = (offsets >= self._bounds.source_from) & (offsets < self._bounds.source_to)
        for offset in offsets[inside].tolist():
            self._add("missing", offset, NOWHERE, "not in the offset map")

    def _add(self, kind: Kind, source: int, copy: int, detail: str = "") -> None:
        explained = self._explain(kind, source, copy) if kind not in ("deleted", "damaged", "unknown") else ""
        self._tally(Difference(kind, source, copy, 1, explained, detail))

    def _tally(self, found: Difference) -> None:
        self._result.tally.add(found)
