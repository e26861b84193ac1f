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

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from strait.state.destination_log import Found, OwnLog, SharedLog
from strait.state.offset_map import Gap
from strait.state.schema import OffsetMapping
from strait.state.source_log import SourceLog
from strait.state.unknown_stretches import unknown_stretches, without


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
        self._source = SourceLog(begun, self._written, compacted=compacted)
        self._log = SharedLog(begun, log_end) if shared else OwnLog(begun)
        self._unknown = unknown_stretches(begun, lambda records: self._source.after(records).number)
        self.log_end = log_end
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
        if 0 <= self.log_end < result.number:
            return Translated(self.log_end, Fit.AHEAD)  # the destination has lost acknowledged records
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

    def next_to_source(self, offset: int, read: Gap) -> Translated:
        """Return the source offset of the link's next record at an offset of the destination, or the offset up to which the
        link has read if it is higher. `to_source` returns the offset after the last record instead, which is lower if the
        records between them were filtered out.

        Args:
            read: source offset before which the link has no other records than the first ``read.sequence``.
        """
        result = self.to_source(offset)
        if result.fit is not Fit.EXACT:
            return result
        records = self._log.records_before(offset).number
        following = self.next_at_source(records)
        known = [following.number] * following.exact + [read.source] * (read.sequence <= records)
        return Translated(max([result.offset, *known]), result.fit)

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


def _fit(*found: Found) -> Fit:
    return Fit.EXACT if all(item.exact for item in found) else Fit.INEXACT
