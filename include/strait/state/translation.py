"""Translation of committed offsets between source and destination, exact at any lag. Pure.

A committed offset is the offset of the next record to consume. Its translation is the offset after the last consumed
record's counterpart on the other cluster. So no record is skipped, neither one of the link nor one that another
producer wrote in between, and none is read twice.

The map is exact for records that a checkpoint has confirmed, and for later ones if their entries agree. In three cases
it does not determine the offset. The result is then the earliest possible one and marked as inexact: it may be too
early, never too late.

- Entries since the last checkpoint disagree, or the source is compacted, so that a writer that lost a race may have
  found gaps that the winner did not.
- The source was truncated, or a compacted one was read again from an older checkpoint. Its offsets are those of the
  records that it has now; a destination offset before that point may belong to records that were copied again.
- Other producers write to the destination. Only the map's checkpoints show how many of their records came before.

A rebuilt map also has ranges for which it has no offsets. There is no result then.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from strait.state.destination_log import Found, OwnLog, SharedLog
from strait.state.offset_map import Gap, gaps_of, newest_first
from strait.state.schema import OffsetMapping
from strait.state.unknown_stretches import unknown_stretches, without

_NOWHERE = Gap(1 << 62, 1 << 62)


class Fit(StrEnum):
    """Accuracy of a translated offset."""

    EXACT = "exact"
    OVERLAP = "overlap"  # exact, but records that were consumed come after it: two links interleave them differently
    AHEAD = "ahead"  # after the last replicated record: the result is the end of the replicated records, and grows
    BEFORE_START = "before_start"  # the record at the offset was not replicated, and none before it: the result is the first that was
    INEXACT = "inexact"  # the map does not determine it: the result may be too early, never too late
    DELETED = "deleted"  # the records there were deleted: the result is the first that is left
    NOT_REPLICATED = "not_replicated"  # no record of the partition is: there is no result
    UNKNOWN = "unknown"  # the clusters or a rebuilt map lack the information: there is no result


@dataclass(frozen=True, slots=True)
class Translation:
    """One translated offset.

    ``to_offset`` None: it has no counterpart, or it is unknown. ``shared``: other producers may write to the
    destination topic, so an offset there does not account for their records. ``rereads``: number of consumed records
    after it there.
    """

    topic: str
    partition: int
    offset: int
    to_topic: str
    to_offset: int | None
    fit: str
    detail: str = ""
    shared: bool = False
    rereads: int = 0

    def as_data(self) -> dict[str, Any]:
        """Return the fields as machine-readable data."""
        return asdict(self)


class Translated(NamedTuple):
    """An offset on the other cluster, and its accuracy."""

    offset: int
    fit: Fit


class Translator:
    """Translates the offsets of one partition.

    Args:
        runs: the map's entries for the two topics as they are now, in any order; at least one.
        written: number of records that the link is known to have written to the destination partition.
        position: the next source offset that the link is known to replicate; -1: unknown.
        shared: other producers may have written to the destination.
        compacted: the source is compacted.
        log_end: the destination's log end offset; -1: unknown.
    """

    def __init__(
        self,
        runs: Iterable[OffsetMapping],
        written: int = 0,
        position: int = -1,
        *,
        shared: bool = False,
        compacted: bool = False,
        log_end: int = -1,
    ) -> None:
        ordered = sorted(runs, key=lambda run: (run.sequence_base, run.sequence_end, run.destination_base))
        self._first = ordered[0].sequence_base
        self._written = max(written, ordered[0].sequence_base, *(run.sequence_end for run in ordered))
        begun = [run for run in ordered if run.sequence_base <= self._written]
        self._source = _Source(_without_passed(begun), self._written, compacted=compacted)
        self._log = SharedLog(begun, log_end) if shared else OwnLog(begun)
        self._unknown = unknown_stretches(begun, lambda records: self._source.after(records).number)
        self._log_end = log_end
        self.position = max(position, self._source.after(self._written).number)

    def last_record(self) -> tuple[int, int] | None:
        """Return the source and destination offsets of the last record known to be written; None if there is none, or
        if the map does not determine them."""
        source, copy = self._source.after(self._written), self._log.after(self._written)
        if self._written <= self._first or not (source.exact and copy.exact):
            return None
        return source.number - 1, copy.number - 1

    def to_destination(self, offset: int) -> Translated:
        """Return the destination's committed offset for a committed offset of the source.

        If that is unknown, return the first offset from which on it is known again, as `to_source` does.
        """
        for stretch in self._unknown:
            if stretch.covers_source(offset):
                return Translated(self._log.after(stretch.end).number, Fit.UNKNOWN)
        records = self._source.records_before(offset)
        result = self._log.after(min(records.number, self._written))
        if 0 <= self._log_end < result.number:
            return Translated(self._log_end, Fit.AHEAD)  # the destination has lost acknowledged records
        if offset < self._source.first:
            return Translated(result.number, Fit.BEFORE_START)
        if offset > self.position:
            return Translated(result.number, Fit.AHEAD)
        return Translated(result.number, _fit(records, result))

    def to_source(self, offset: int) -> Translated:
        """Return the source's committed offset for a committed offset of the destination."""
        records = self._log.records_before(offset)
        for stretch in self._unknown:
            if stretch.covers(records.number):
                return Translated(stretch.source_end, Fit.UNKNOWN)
        result = self._source.after(min(records.number, self._written))
        if records.number < self._first:
            return Translated(result.number, Fit.BEFORE_START)
        if records.number > self._written:
            return Translated(result.number, Fit.AHEAD)
        return Translated(result.number, _fit(records, result))

    @property
    def first(self) -> Gap:
        """Return the number of the link's first record, and the source offset at which the link started."""
        return Gap(self._first, self._source.first)

    def records_before(self, offset: int) -> Found:
        """Return how many of the link's records come before a source offset; at least this many if not exact."""
        for stretch in self._unknown:
            if stretch.covers_source(offset):
                return Found(max(0, stretch.first), exact=False)
        records = self._source.records_before(offset)
        return Found(min(records.number, self._written), records.exact)

    def next_at_source(self, records: int) -> Found:
        """Return the first source offset, or an earlier one, that can hold a record other than the link's first
        ``records``."""
        after = self._after(records)
        if records >= self._written:
            return after
        following = self._after(records + 1)
        return Found(max(after.number, following.number - 1), after.exact and following.exact)

    def replicated_from(self, offset: int) -> int:
        """Return the end of the source offsets, from this one on, that are all known to hold records that the link
        replicates; the same offset if none is known to."""
        end = self._source.run_end(offset, self._written)
        for stretch in self._unknown:
            if offset < stretch.source_end:
                end = min(end, max(offset, stretch.source_from))
        return end

    def pieces(self, first: int, end: int) -> list[tuple[int, int, int]]:
        """Return the records with numbers in [``first``, ``end``) whose source offsets are exact: number, source offset
        and count of each stretch of consecutive ones."""
        unclear = [*self._source.unclear(), *((stretch.first, stretch.end) for stretch in self._unknown)]
        return [
            (low, source + low - number, high - low)
            for number, source, records in self._source.pieces(first, min(end, self._written))
            for low, high in without((number, number + records), unclear)
        ]

    def copies(self, first: int, end: int) -> tuple[int, int]:
        """Return the destination offsets of records [``first``, ``end``), at least one, if no other producer writes
        there."""
        return self._log.after(first + 1).number - 1, self._log.after(end).number

    def _after(self, records: int) -> Found:
        for stretch in self._unknown:
            if stretch.covers(records):
                return Found(max(0, stretch.source_from), exact=False)
        return self._source.after(records)

    def checkpoints(self) -> list[tuple[int, int]]:
        """Return destination offsets, each with the number of the link's records before it."""
        begin = [(0, 0)] if self._first == 0 else []
        return begin + (self._log.checkpoints() if isinstance(self._log, SharedLog) else [])


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


def _fit(*found: Found) -> Fit:
    return Fit.EXACT if all(item.exact for item in found) else Fit.INEXACT


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


class _Source:
    """Conversion between a record's number and its source offset."""

    def __init__(self, runs: Sequence[OffsetMapping], written: int, *, compacted: bool) -> None:
        words, settled = _words(runs, written)
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
                kept = [it for it in self._anchors if it.source < word.source and it.sequence < word.sequence]
                same = bool(kept) and _shift(kept[-1]) == _shift(word)
                self._anchors = kept if same else [*kept, word]
            else:
                doubled = word.sequence == before.sequence and word != before
                if doubled or _shift(word) < _shift(last) or (compacted and _shift(word) > _shift(last)):
                    first = min(word.sequence, self.records_before(word.source).number)
                    opened = open_dispute or _Dispute(first, _shift(last), _NOWHERE)
                    lower = min(opened.shift, _shift(word))
                    open_dispute = opened._replace(first=min(opened.first, first), shift=lower)
                if _shift(word) > _shift(last):  # the furthest applies: then the fewest records come before an offset
                    self._anchors = [*(it for it in self._anchors if it.sequence < word.sequence), word]
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
        for anchor, following in pairwise([*self._anchors[at:], _NOWHERE]):
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


def _shift(word: Gap) -> int:
    """Return the difference between a record's source offset and its number."""
    return word.source - word.sequence


def _words(runs: Sequence[OffsetMapping], written: int) -> tuple[list[Gap], set[Gap]]:
    """Return all bases and gaps that no later checkpoint has replaced; and those that a checkpoint has confirmed."""
    confirming = [run for run in runs if run.sequence_end > run.sequence_base]
    confirmed: list[tuple[int, int]] = []
    settled: set[Gap] = set()
    for newest in newest_first(confirming):
        known = gaps_of(newest, behind=newest.sequence_end)
        settled |= {gap for gap in known if not _within(gap.sequence, confirmed)}
        confirmed.append((newest.sequence_base, newest.sequence_end))
    open_words = {gap for run in runs for gap in gaps_of(run, behind=written) if not _within(gap.sequence, confirmed)}
    return sorted(settled | open_words) or [Gap(runs[0].sequence_base, runs[0].source_base)], settled


def _within(sequence: int, ranges: Iterable[tuple[int, int]]) -> bool:
    return any(first <= sequence < end for first, end in ranges)
