"""Records that a failover leaves on the source, as far as the link has reported. Pure.

Each partition has a separate bound, from the time when a slot last reported it while reading the source. A partition
that waited or was paused may have any number of records that the link never saw.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from strait.model import TopicPartition
from strait.planning.failover import Check, Ends, Verdict, range_of, records
from strait.reasons import Reason
from strait.state.failover_records import MissingRecords
from strait.state.report_changes import ReportChanges
from strait.state.report_records import PartitionReport, Report
from strait.state.schema import Plan, finished_ends
from strait.text import duration, listed, plural

_SILENT_MS = 60_000
"""Partitions whose last report is older than the newest one by more than this were not being replicated."""
_SOURCE_AWAY = frozenset(
    {
        Reason.SOURCE_UNREACHABLE,
        Reason.SOURCE_OTHER_CLUSTER,
        Reason.SOURCE_UNSUPPORTED,
        Reason.SOURCE_LEADERLESS,
        Reason.SOURCE_DENIED,
    }
)
"""Partitions wait for these reasons when the source is lost, which does not show how they were before."""


class LastWord(NamedTuple):
    """The last reports about a partition.

    Attributes:
        position: next source offset to replicate; -1: unknown.
        end: the source's end offset as last seen, open transactions included; -1: unknown.
        seen_ms: Unix time when a slot last reported it while reading the source; -1: unknown.
        behind_seconds: age of the newest replicated record at that time if newer ones waited, else 0; None: unknown.
        waiting: why it was not being replicated, for a reason other than an unavailable source; empty: it was.
        until: the source offset before which its copy ends; -1: it has no end. Later records are not missing.
        over: it was copied up to there.
    """

    position: int = -1
    end: int = -1
    seen_ms: int = -1
    behind_seconds: float | None = None
    waiting: str = ""
    until: int = -1
    over: bool = False

    @classmethod
    def finished(cls, end: int) -> "LastWord":
        """Return the last word about a partition that was copied up to its end."""
        return cls(end, end, behind_seconds=0.0, until=end, over=True)

    @property
    def known(self) -> bool:
        return self.position >= 0 and self.end >= 0

    def bound_seconds(self, at_ms: int) -> float | None:
        """Return the maximum age of its newest record on the destination, in seconds; None: unknown."""
        if self.over:
            return 0.0
        if not self.known or self.seen_ms < 0 or self.behind_seconds is None:
            return None
        return self.behind_seconds + max(0, at_ms - self.seen_ms) / 1000


LastWords = Mapping[TopicPartition, LastWord]


class LastWordsRead:
    """The last reports about every partition of the plans, collected while reports are read in any order. A value that a
    newly started application does not know comes from a report of an earlier one.

    Of a topic that waits without being planned, the plan need not name the partitions; the first one then represents all.
    """

    def __init__(self, plans: Mapping[str, Plan]) -> None:
        self.words = {
            TopicPartition(topic.source, number): LastWord()
            for plan in plans.values()
            for topic in plan.topics
            for number in range(len(topic.slots))
        }
        until = {
            TopicPartition(topic.source, number): end
            for plan in plans.values()
            for topic in plan.topics
            for number, end in enumerate(topic.policy.ends)
        }
        over = finished_ends(plans.values())
        planned = {place.topic for place in self.words}
        waits = [item for plan in plans.values() for item in plan.waiting]
        for place in self.words:
            of_place = (item for item in waits if item.topic == place.topic)
            why = next((item for item in of_place if not item.partitions or place.partition in item.partitions), None)
            self.words[place] = LastWord(waiting="" if why is None else str(why.reason), until=until.get(place, -1))
        self.words |= {place: LastWord.finished(end) for place, end in over.items() if place in self.words}
        left_out = {
            TopicPartition(item.topic, number): LastWord(waiting=str(item.reason))
            for item in waits
            if item.reason != Reason.SOURCE_MISSING  # it has no records, as last seen
            for number in item.partitions or (() if item.topic in planned else (0,))
        }
        self._left_out = left_out.keys() - self.words.keys()
        self.words = left_out | self.words
        self._planned = frozenset(place for place, word in self.words.items() if not word.waiting)
        self._known_ms = dict.fromkeys(self.words, (-1, -1, -1))  # when position, end and state were reported

    def take(self, report: Report | ReportChanges) -> None:
        """Add a report."""
        for row in report.partitions:
            place = TopicPartition(row.topic, row.partition)
            if place in self.words and not self.words[place].over:
                self._take(place, row, row.at_ms if row.at_ms >= 0 else report.at_ms)

    def _take(self, place: TopicPartition, row: PartitionReport, at_ms: int) -> None:
        word, (position_ms, end_ms, state_ms) = self.words[place], self._known_ms[place]
        if row.position >= 0 and at_ms >= position_ms:
            word, position_ms = word._replace(position=row.position), at_ms
        if row.end >= 0 and at_ms >= end_ms:
            word, end_ms = word._replace(end=_until(row.end + row.held_back_records, word)), at_ms
        if _reads(row) and at_ms >= word.seen_ms:
            word = word._replace(seen_ms=at_ms, behind_seconds=_behind_seconds(row, at_ms))
        if at_ms >= state_ms:
            state_ms = at_ms
            if place in self._planned:
                waits = row.state == "waiting" and not _reads(row) and row.reason not in _SOURCE_AWAY
                word = word._replace(waiting=str(row.reason or row.state) if waits else "")
        self.words[place], self._known_ms[place] = word, (position_ms, end_ms, state_ms)

    @property
    def open(self) -> frozenset[TopicPartition]:
        """The partitions about which earlier reports can add something."""
        return frozenset(
            place
            for place, word in self.words.items()
            if not (word.over or place in self._left_out) and (not word.known or word.seen_ms < 0)
        )

    @property
    def complete(self) -> bool:
        """Whether earlier reports are not needed: of each partition, position and end are known, and it was either
        reported while the source was read, or already waiting."""
        return all(
            word.over or place in self._left_out or (word.known and (word.seen_ms >= 0 or word.waiting))
            for place, word in self.words.items()
        )


def _reads(row: PartitionReport) -> bool:
    """Return whether a slot reads the partition from the source; an open transaction only holds back the records after
    it."""
    return row.state in ("copying", "caught_up") or row.reason == Reason.OPEN_TRANSACTION


def _behind_seconds(row: PartitionReport, at_ms: int) -> float | None:
    held = (at_ms - row.held_since_ms) / 1000 if row.held_since_ms >= 0 else 0.0
    if row.lag_records > 0 and row.lag_seconds <= 0:
        return None  # its records have no timestamp, or one in the future
    return max(row.lag_seconds, held)


def _until(end: int, word: LastWord) -> int:
    return end if word.until < 0 else min(end, word.until)


def wanted(ends: Ends, words: LastWords) -> Ends:
    """Return the source's end offsets limited to the ends of copies."""
    return {place: _until(end, words[place]) if place in words else end for place, end in ends.items()}


def missing(positions: Ends, ends: Ends) -> tuple[MissingRecords, ...]:
    """Return the records that are known to be on the source and not on the destination.

    Args:
        positions: next source offset to replicate; -1: unknown.
        ends: end offsets of the source.
    """
    return tuple(
        MissingRecords(topic=place.topic, partition=place.partition, from_offset=positions[place], to_offset=end)
        for place, end in sorted(ends.items())
        if 0 <= positions.get(place, -1) < end
    )


def rpo_seconds(words: LastWords, at_ms: int) -> float | None:
    """Return the maximum age in seconds, at ``at_ms``, of the newest record on the destination, for the partition with
    the highest one; None: unknown for some partition."""
    bounds = [word.bound_seconds(at_ms) for word in words.values()]
    known = [bound for bound in bounds if bound is not None]
    return round(max(known, default=0.0), 3) if len(known) == len(bounds) else None


def rpo_records(words: LastWords, found: Sequence[MissingRecords]) -> int | None:
    """Return how many offsets were seen on the source and not replicated; None: unknown for some partition."""
    return None if not_copied(words) else records(found)


def not_copied(words: LastWords) -> dict[TopicPartition, str]:
    """Return the partitions that were not being replicated -> why. How many records they lack is unknown."""
    newest = max((word.seen_ms for word in words.values()), default=-1)
    found = {}
    for place, word in sorted(words.items()):
        if word.over:
            continue
        if word.waiting:
            found[place] = word.waiting
        elif not word.known or word.seen_ms < 0:
            found[place] = "nothing is known"
        elif word.seen_ms < newest - _SILENT_MS:
            found[place] = f"not reported for {duration((newest - word.seen_ms) / 1000)}"
    return found


def lost(found: Sequence[MissingRecords], words: LastWords, at_ms: int) -> Check:
    """Report the records known to be missing on the destination; first the partitions about which least is known."""
    still, parts = not_copied(words), []
    if still:
        shown = []
        for place, why in still.items():
            bound = words[place].bound_seconds(at_ms)
            copied = "how far is not known" if bound is None else f"copied until {duration(bound)} before"
            shown.append(f"{place} ({why}; {copied})")
        parts.append(
            f"{len(still)} of {plural(len(words), 'partition was', 'partitions were')} not being copied: {listed(shown)}"
        )
    number = f"{plural(records(found), 'offset')} of {plural(len(found), 'partition')} are known to be missing"
    parts.append(
        ("at least " if still else "") + number + (f": {listed([range_of(item) for item in found])}" if found else "")
    )
    rpo = rpo_seconds(words, at_ms)
    if rpo is None:
        dated = [bound for word in words.values() if (bound := word.bound_seconds(at_ms)) is not None]
        parts.append(f"how old they are is not known: at least {duration(max(dated, default=0.0))}")
    parts.append("what was written after the last look at the source is not known, nor which transactions are cut")
    return Check(Verdict.WARNING, "; ".join(parts) + ": strait tail list names both once the source is back")


def late(found: Sequence[MissingRecords]) -> Check:
    """Check that nothing was written to the source after its producers had stopped."""
    if not found:
        return Check(Verdict.DONE, "nothing was written to the source meanwhile: no record is missing")
    text = f"{plural(records(found), 'offset was', 'offsets were')} written to the source too late, and not copied"
    return Check(Verdict.WARNING, f"{text}: {listed([range_of(item) for item in found])}; strait start copies them")
