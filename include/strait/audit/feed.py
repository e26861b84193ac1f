"""One side of a comparison, batch by batch: each with its numbers and its fingerprint. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from strait.audit.findings import NOWHERE, Difference
from strait.audit.numbering import UNNUMBERED, Numbering, Span
from strait.errors import CorruptBatch
from strait.wire.batch import Batch
from strait.wire.digests import STRONG_BYTES, Array, Seen, fingerprint, no_digests, record_digests

END = 1 << 62
Side = Literal["source", "destination"]


class Hole(NamedTuple):
    """Offsets [``first``, ``end``) of a log that could not be read.

    ``why``: ``deleted``: retention removed them; ``damaged``: no batch can be recognized there.
    """

    first: int
    end: int
    why: Literal["deleted", "damaged"]


class Evaluated(NamedTuple):
    """Records of the source that a topic's transformation was evaluated for.

    Attributes:
        offsets, digests: of the source, in order; of the transformed records. A record whose value cannot be parsed has a
            digest that equals no other.
        left_out: source offsets of the records that the transformation leaves out.
    """

    offsets: Array
    digests: Array
    left_out: Array


Item = Batch | Hole
"""Batches whose records do not count, such as transaction markers and aborted ones, have 0 records."""


class Options(NamedTuple):
    """Which properties of a record are compared.

    ``timed``: its timestamp; False if the destination replaces timestamps. ``strong``: by SHA-256.
    """

    timed: bool = True
    strong: bool = False


class Rows(NamedTuple):
    """Number, offset and digest of each record, in order."""

    numbers: Array
    offsets: Array
    digests: Array

    def __len__(self) -> int:
        return len(self.numbers)

    def where(self, chosen: Array) -> "Rows":
        """Return the chosen rows."""
        return Rows(*(column[chosen] for column in self))

    @classmethod
    def joined(cls, parts: "list[Rows]") -> "Rows":
        return cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def no_rows(options: Options) -> Rows:
    """Return the rows of no record."""
    offsets, digests = no_digests(strong=options.strong)
    return Rows(offsets, offsets, digests)


@dataclass
class Part:
    """One batch, and the numbers that it covers."""

    span: Span
    batch: Batch
    seen: Seen
    rows: Rows | None = None
    """Its records, of a batch in an old format, which is read to determine its numbers."""


def unreadable(count: int, side: Side, *, strong: bool) -> Array:
    """Return digests that equal no record of the other side."""
    if not strong:
        return np.full(count, int(side == "destination"), np.uint64)
    filler = bytes([side == "destination"]) * STRONG_BYTES
    return np.frombuffer(filler * count, f"V{STRONG_BYTES}")


@dataclass
class Feed:
    """The batches of one side, in the order of its log.

    Attributes:
        next: the next batch whose records have numbers; None at the end.
        outside: the batches before it whose records have none; the reader takes them.
        again: the batches before it whose numbers were passed already.
        damaged: the batches that were read and do not match their checksums.
        holes: number intervals in which records may be missing because the log could not be read there.
        bytes, batches: read so far.
        newest_ms: the newest timestamp of undamaged batches with records.
        left_out: number -> source offset, of records that the transformation leaves out although they have a number.
    """

    side: Side
    items: Iterator[Item | Evaluated]
    numbering: Numbering
    options: Options
    next: Part | None = None
    outside: list[Part] = field(default_factory=list)
    again: list[Part] = field(default_factory=list)
    damaged: list[Part] = field(default_factory=list)
    holes: list[tuple[int, int, str]] = field(default_factory=list)
    unread: list[Hole] = field(default_factory=list)
    bytes: int = 0
    batches: int = 0
    newest_ms: int = -1
    left_out: dict[int, int] = field(default_factory=dict)
    high: int = -1
    """The number after the highest one so far."""
    _open: list[tuple[int, str]] = field(default_factory=list)
    _ahead: Item | Evaluated | None = None

    def __post_init__(self) -> None:
        self._ahead = next(self.items, None)
        self.advance()

    @property
    def at(self) -> int:
        """The number at which the next batch starts."""
        return END if self.next is None else self.next.span.first

    def advance(self) -> None:
        """Go to the next batch with numbers."""
        while self._ahead is not None:
            item, self._ahead = self._ahead, next(self.items, None)
            if isinstance(item, Hole):
                self._open.append((self.high, item.why))
                if item.why == "damaged":
                    self.unread.append(item)
                continue
            part = self._evaluated(item) if isinstance(item, Evaluated) else self._part(item)
            if part is None:
                continue
            if part.span.first < self.high:
                rows = self.rows(part)
                self.again.append(replace(part, rows=rows.where(rows.numbers < self.high)))
                if part.span.end <= self.high:
                    continue
                rest = rows.where(rows.numbers >= self.high)
                part = replace(part, span=Span(self.high, part.span.end, whole=False), rows=rest)
            if self._open:
                self._close(part.span.first)
            self.high = part.span.end
            self.next = part
            return
        self._close(END)
        self.next = None

    def hole_at(self, number: int) -> str:
        """Return why a record of this number may be missing on this side: ``deleted``, ``damaged``, or ""."""
        return next((why for first, end, why in self.holes if first <= number < end), "")

    def rows(self, part: Part) -> Rows:
        """Return the records of a batch; those of an unreadable one have digests that equal no other."""
        if part.rows is not None:
            return part.rows
        batch = part.batch
        try:
            offsets, digests = record_digests(batch, timed=self.options.timed, strong=self.options.strong)
        except CorruptBatch:
            count = min(max(0, batch.last_offset_delta + 1), len(batch.view))
            offsets = np.arange(batch.base_offset, batch.base_offset + count)
            digests = unreadable(count, self.side, strong=self.options.strong)
        return Rows(self.numbering.numbers(batch, offsets, part.span.first), offsets, digests)

    def offsets(self, part: Part) -> Array:
        """Return the offsets of a batch's records."""
        if part.rows is None and part.batch.whole:
            return np.arange(part.batch.base_offset, part.batch.next_offset)
        return self.rows(part).offsets

    @property
    def has_asides(self) -> bool:
        """Whether batches before the next one are to be reported."""
        return bool(self.damaged or self.outside or self.again or self.unread)

    def report_damage(self, report: Callable[[Difference], None]) -> None:
        """Report the damaged batches since the last call."""
        found = [(part.batch.base_offset, max(1, part.batch.records), str(self.side)) for part in self.damaged]
        found += [(hole.first, hole.end - hole.first, f"{self.side}: unreadable") for hole in self.unread]
        for offset, records, detail in found:
            places = (offset, NOWHERE) if self.side == "source" else (NOWHERE, offset)
            report(Difference("damaged", *places, records, detail=detail))
        self.damaged.clear()
        self.unread.clear()

    def _close(self, before: int) -> None:
        self.holes += [(high, before, why) for high, why in self._open]
        self._open.clear()

    def _part(self, batch: Batch) -> Part | None:
        """Return the batch with its numbers; None if it has no records, or none with a number."""
        self.bytes += len(batch.view)
        self.batches += 1
        if batch.magic < 2:
            part = self._old(batch)
        elif batch.records <= 0:
            return None
        else:
            seen = fingerprint(batch, timed=self.options.timed, strong=self.options.strong)
            batch = batch if seen.intact else self._bounded(batch)
            span = self.numbering.span(batch, intact=seen.intact)
            part = Part(span or Span(UNNUMBERED, UNNUMBERED, whole=False), batch, seen)
            if seen.intact:
                self.newest_ms = max(self.newest_ms, batch.max_timestamp)
            else:
                self.damaged.append(part)
        return self._with_numbers(part)

    def _with_numbers(self, part: Part | None) -> Part | None:
        if part is not None and part.span.first == part.span.end:
            self.outside.append(part)
            return None
        return part

    def _evaluated(self, item: Evaluated) -> Part | None:
        nothing: Any = None
        numbers = self.numbering.numbers(nothing, item.left_out, UNNUMBERED)
        claimed = numbers != UNNUMBERED
        self.left_out.update(zip(numbers[claimed].tolist(), item.left_out[claimed].tolist(), strict=True))
        if not len(item.offsets):
            return None
        return self._with_numbers(self._of_rows(nothing, item.offsets, item.digests))

    def _bounded(self, batch: Batch) -> Batch:
        """Return a damaged batch without the numbers in its header that contradict each other or the batch after it."""
        following = self._ahead
        end = following.base_offset if isinstance(following, Batch) and following.magic == 2 else batch.next_offset
        fits = batch.whole and batch.next_offset <= end
        if fits or end <= batch.base_offset:
            return batch
        count = min(end - batch.base_offset, batch.length)
        return batch._replace(last_offset_delta=count - 1, records=count)

    def _old(self, batch: Batch) -> Part | None:
        nothing: Any = None
        try:
            offsets, digests = record_digests(batch, timed=self.options.timed, strong=self.options.strong)
        except CorruptBatch:
            self.damaged.append(Part(Span(UNNUMBERED, UNNUMBERED, whole=False), batch, Seen(nothing, intact=False)))
            return None
        return self._of_rows(batch, offsets, digests)

    def _of_rows(self, batch: Batch, offsets: Array, digests: Array) -> Part:
        nothing: Any = None
        numbers = self.numbering.numbers(batch, offsets, UNNUMBERED)
        known = numbers[numbers != UNNUMBERED]
        first, end = (int(known[0]), int(known[-1]) + 1) if len(known) else (UNNUMBERED, UNNUMBERED)
        rows = Rows(numbers, offsets, digests)
        return Part(Span(first, end, whole=False), batch, Seen(nothing, intact=True), rows)
