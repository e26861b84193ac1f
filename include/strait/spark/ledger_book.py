"""Track which of the slots' rows are not in the ledger yet, which application writes them, and which ranges no slot is
left to report. Pure.

Each driver writes the rows of the application that it belongs to, and after a while those that a dead driver has left.
Rows follow one another in the link's sequence numbers, so a range that a killed slot had copied but not reported is
visible as soon as its successor reports a later one: the range becomes a row, too, with the values that follow from the
numbers. Another application that copies the same partitions may have copied the range and report it later, so the row
waits while another application still reports.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from strait.state.ledger_records import LedgerEntry, LedgerMark, LedgerPart

UNREPORTED = "unreported"


class _End(NamedTuple):
    """The end of the range that a partition's rows cover."""

    sequence: int
    source: int
    destination: int
    at_ms: int


@dataclass
class Pending:
    """Rows that are not in the ledger's files; ``gaps``: unreported ranges before them, of the same partitions."""

    offset: int
    at_ms: int
    part: LedgerPart
    gaps: list[LedgerEntry] = field(default_factory=list)
    gaps_since_ms: int = 0

    def parts(self) -> Iterator[LedgerPart]:
        """Yield the parts to write."""
        if self.gaps:
            until_ms = self.part.started_at_ms
            times = {"started_at_ms": min(self.gaps_since_ms, until_ms), "ended_at_ms": until_ms}
            yield self.part.model_copy(update={"entries": tuple(self.gaps), **times})
        yield self.part


class LedgerBook:
    """The ledger topic as one driver reads it, from its start.

    Args:
        patience_ms: time after which a row that its own application has not written is written by another one.
        head_start: the application ID of the processes that copied before this application's slots did; "" if there
            were none. No other application writes their rows.
    """

    def __init__(self, group: str, application: str, patience_ms: int, head_start: str = "") -> None:
        self._group = group
        self._application = application
        self._own = {application, head_start}
        self._patience_ms = patience_ms
        self._pending: list[Pending] = []
        self._gapped: list[Pending] = []  # those of `_pending` that have gaps
        self._ends: dict[tuple[str, int, str], _End] = {}
        self._heard: dict[str, int] = {}  # application -> time of its last report

    def take(self, offset: int, at_ms: int, record: LedgerPart | LedgerMark) -> None:
        """Process the next record of the topic, which was written at ``at_ms``."""
        if isinstance(record, LedgerMark):
            self.written(record.group, record.application, record.below)
            return
        pending = Pending(offset, at_ms, record)
        for entry in record.entries:
            self._take_entry(pending, entry)
        if record.group == self._group:
            self._pending.append(pending)
            if pending.gaps:
                self._gapped.append(pending)
            self._heard[record.application] = at_ms

    def due(self, now_ms: int, *, last: bool = False) -> dict[str, list[Pending]]:
        """Return application -> its rows that must be written now, oldest first.

        Args:
            last: whether this is this application's last write.
        """
        found: dict[str, list[Pending]] = {}
        waits: set[str] = set()
        for pending in self._pending:
            application = pending.part.application
            if application not in waits and self._is_due(pending, now_ms, last):
                found.setdefault(application, []).append(pending)
            else:
                waits.add(application)  # an application's rows are written in order
        return found

    def written(self, group: str, application: str, below: int) -> None:
        """Drop the rows of this application before offset ``below``: they are in the ledger's files."""
        if group == self._group:
            self._pending = [one for one in self._pending if one.part.application != application or one.offset >= below]
            self._gapped = [one for one in self._pending if one.gaps]

    def _is_due(self, pending: Pending, now_ms: int, last: bool) -> bool:
        if now_ms - pending.at_ms > self._patience_ms:
            return True
        if pending.part.application not in self._own:
            return False
        return last or not pending.gaps or not self._is_another_there(now_ms)

    def _is_another_there(self, now_ms: int) -> bool:
        return any(
            now_ms - at_ms <= self._patience_ms
            for application, at_ms in self._heard.items()
            if application != self._application
        )

    def _take_entry(self, pending: Pending, entry: LedgerEntry) -> None:
        where = entry.topic, entry.partition, entry.destination
        if min(entry.sequence_from, entry.sequence_to) < 0:
            return
        for other in self._gapped:
            other.gaps = [left for gap in other.gaps for left in _less(gap, entry)]
        end = self._ends.get(where)
        if end is not None and entry.sequence_from > end.sequence:
            pending.gaps.append(_gap(end, entry))
            pending.gaps_since_ms = min(pending.gaps_since_ms or end.at_ms, end.at_ms)
        if end is None or entry.sequence_to >= end.sequence:
            told = entry.sequence_to, entry.source_to, entry.destination_to, pending.part.ended_at_ms
            self._ends[where] = _End(*told)


def _gap(end: _End, entry: LedgerEntry) -> LedgerEntry:
    return entry.model_copy(
        update={
            "source_from": end.source,
            "source_to": entry.source_from,
            "destination_from": end.destination,
            "destination_to": entry.destination_from,
            "sequence_from": end.sequence,
            "sequence_to": entry.sequence_from,
            "records": entry.sequence_from - end.sequence,
            "batches": -1,
            "bytes": -1,
            "digest": -1,
            "copy_digest": -1,
            "copy_digest_from": -1,
            "state": UNREPORTED,
            "reason": "",
        }
    )


def _less(gap: LedgerEntry, told: LedgerEntry) -> Iterator[LedgerEntry]:
    """Yield the parts of the gap that this row does not cover."""
    same = (gap.topic, gap.partition, gap.destination) == (told.topic, told.partition, told.destination)
    if not same or told.sequence_from >= gap.sequence_to or told.sequence_to <= gap.sequence_from:
        yield gap
        return
    if told.sequence_from > gap.sequence_from:
        before = {"sequence_to": told.sequence_from, "source_to": told.source_from}
        yield _cut(gap, before | {"destination_to": told.destination_from})
    if told.sequence_to < gap.sequence_to:
        after = {"sequence_from": told.sequence_to, "source_from": told.source_to}
        yield _cut(gap, after | {"destination_from": told.destination_to})


def _cut(gap: LedgerEntry, bounds: dict[str, int]) -> LedgerEntry:
    cut = gap.model_copy(update=bounds)
    return cut.model_copy(update={"records": cut.sequence_to - cut.sequence_from})
