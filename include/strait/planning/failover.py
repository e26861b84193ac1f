"""What the steps of a failover find, judged from what was observed. Pure."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from strait.model import TopicPartition
from strait.planning.consumer_groups import GroupStatus, OffsetState
from strait.planning.history.overrun import duration
from strait.planning.status.status import PartitionStatus
from strait.reasons import Reason
from strait.state.failover_records import Failover, MissingRecords
from strait.state.report_changes import ReportChanges
from strait.state.schema import GroupSyncReport, Plan, Report
from strait.state.translation import Fit

_LISTED_MOST = 5
ALL_GROUPS = "*"
"""Of names of groups that are accepted: any."""
_SOON = frozenset({OffsetState.BEHIND, OffsetState.REWOUND, OffsetState.AHEAD_OF_COPY, OffsetState.IN_SYNC})
"""Offsets in these will be exact once the link is drained and they are committed, if their translation is."""

Ends = Mapping[TopicPartition, int]


class Verdict(StrEnum):
    """What a step comes to."""

    DONE = "done"
    WARNING = "warning"  # it holds, and somebody should know something
    WAITING = "waiting"  # not yet; looking again may help
    FAILED = "failed"


class Check(NamedTuple):
    """What a step has found, in words for people."""

    verdict: Verdict
    detail: str


class Writer(NamedTuple):
    """A producer that wrote to a partition. ``open_since``: offset at which its open transaction begins; -1: none."""

    producer_id: int
    last_ms: int
    open_since: int


class Member(NamedTuple):
    """A consumer in a group."""

    client_id: str
    host: str

    def __str__(self) -> str:
        return f"{self.client_id} at {self.host.lstrip('/')}"


def copying(rows: Sequence[PartitionStatus], *, stopped: bool, pending: Sequence[str]) -> Check:
    """Whether everything that the link selects is being copied.

    Args:
        rows: of all partitions of the link's plans.
        pending: what a new plan would change.
    """
    if stopped:
        return Check(Verdict.FAILED, "the link is stopped, so what is missing will not be copied: run strait start")
    if not rows:
        return Check(Verdict.FAILED, "the link has no plan with topics")
    if pending:
        return Check(Verdict.FAILED, f"run strait apply first, since the plan would change: {listed(pending)}")
    left = [row for row in rows if row.state in ("waiting", "starting") and row.reason != Reason.OPEN_TRANSACTION]
    if left:
        shown = [f"{_place(row)} {row.reason or row.state}" for row in left]
        return Check(Verdict.FAILED, f"{len(left)} of {len(rows)} partitions are not copied: {listed(shown)}")
    lag = sum(max(0, row.lag_records) for row in rows)
    text = f"{len(rows)} partitions are copied, {lag:,} records behind"
    held = [row for row in rows if row.reason == Reason.OPEN_TRANSACTION]
    if not held:
        return Check(Verdict.DONE, text)
    places = listed([f"{_place(row)} {row.held_back_records:,}" for row in held])
    return Check(Verdict.WARNING, f"{text}; open transactions hold records back in {len(held)} of them: {places}")


def still(before: Ends, after: Ends, writers: Mapping[TopicPartition, Sequence[Writer]], now_ms: int) -> Check:
    """Whether nobody writes to the source any more.

    Args:
        before, after: where its partitions ended, the wanted time apart.
        writers: the producers that their leaders remember.
    """
    grown = sorted(place for place in after if after[place] != before.get(place))
    if grown:
        shown = [
            f"{place} by {after[place] - before.get(place, 0):,}{_newest(writers, place, now_ms)}" for place in grown
        ]
        return Check(Verdict.WAITING, f"producers still write to {len(grown)} partitions: {listed(shown)}")
    unfinished = [
        f"{place} from offset {writer.open_since:,} by producer id {writer.producer_id}"
        for place in sorted(after)
        for writer in writers.get(place, ())
        if writer.open_since >= 0
    ]
    if unfinished:
        return Check(Verdict.WAITING, f"{len(unfinished)} transactions are open: {listed(unfinished)}")
    return Check(Verdict.DONE, f"nothing was written to {len(after)} partitions")


def drained(rows: Sequence[PartitionStatus], ends: Ends) -> Check:
    """Whether all is copied that the source had when it ended at ``ends``."""
    at = {TopicPartition(row.topic, row.partition): row for row in rows if row.partition is not None}
    behind = []
    for place, end in sorted(ends.items()):
        row = at.get(place)
        if row is None or row.position < end:
            why = "not planned" if row is None else row.reason or row.state
            left = "" if row is None or row.position < 0 else f" {end - row.position:,} offsets behind"
            behind.append(f"{place}{left} ({why})")
    if behind:
        return Check(Verdict.WAITING, f"{len(behind)} of {len(ends)} partitions are not drained: {listed(behind)}")
    return Check(Verdict.DONE, f"{len(ends)} partitions are copied to their ends")


def attached(members: Mapping[str, Collection[Member]]) -> Check:
    """Whether consumers of synchronized groups still work on the source."""
    shown = [f"{group}: {listed([str(member) for member in members[group]] or ['?'])}" for group in sorted(members)]
    if shown:
        return Check(Verdict.WAITING, f"{len(shown)} groups have members on the source: {listed(shown)}")
    return Check(Verdict.DONE, "no synchronized group has members on the source")


def tail(link: str, found: Sequence[MissingRecords], *, stopped: bool, accept: bool) -> Check:
    """Whether the link that copies the other way has copied all that is on the destination. What it has not, clients
    would meet there out of order: records that were written before an earlier failover, and nobody has seen since.

    Args:
        accept: go on although there is something.
    """
    if not found:
        return Check(Verdict.DONE, f"link {link} has copied all that the destination has")
    text = f"link {link} has not copied {records(found):,} offsets: {listed([_range(item) for item in found])}"
    if accept:
        return Check(Verdict.WARNING, text)
    if stopped:
        ways = (
            f"strait start {link} copies them, strait tail list {link} names them, --accept-tail goes on without them"
        )
        return Check(Verdict.FAILED, f"{text}; {ways}")
    return Check(Verdict.WAITING, text)


def groups(statuses: Sequence[GroupStatus], *, accept: Collection[str], soon: bool = False) -> Check:
    """Whether every group continues exactly where it stopped, or further, where it went on to the destination before.

    Args:
        accept: names of groups that may continue elsewhere; `ALL_GROUPS`: any.
        soon: count those too that would once all is copied and their offsets are committed.
    """
    chosen = [status for status in statuses if status.selected]
    moved = [status for status in chosen if not status.synced and _moved(status)]
    others = [status for status in chosen if not (status.synced or _moved(status) or (soon and _will(status)))]
    accepted = [status for status in others if ALL_GROUPS in accept or status.group in accept]
    refused = [status for status in others if status not in accepted]
    exact = len(chosen) - len(moved) - len(others)
    parts = [f"{exact} of {len(chosen)} groups continue exactly where they stopped"]
    if moved:
        parts.append(f"{len(moved)} have moved before: {listed([_where_moved(status) for status in moved])}")
    if accepted:
        parts.append(f"not exactly, as accepted: {listed([f'{status.group} ({status.why})' for status in accepted])}")
    if refused:
        parts.append(f"not exactly: {listed([f'{status.group} ({status.why})' for status in refused])}")
        parts += _skipping(refused)
        if any(item.state is OffsetState.HELD_MOVED for status in refused for item in status.offsets):
            parts.append("--include-moved commits for those that have consumed on the destination before")
        parts.append(f"--accept-inexact {refused[0].group} goes on all the same")
        return Check(Verdict.FAILED, "; ".join(parts))
    return Check(Verdict.WARNING if moved or accepted else Verdict.DONE, "; ".join(parts))


def _skipping(statuses: Sequence[GroupStatus]) -> list[str]:
    """Groups that would skip records, since somebody has committed a later offset on the destination than they have."""
    ahead = [
        f"{status.group} in {item.target} at {item.committed:,} instead of {item.to_offset:,}"
        for status in statuses
        for item in status.offsets
        if item.state is OffsetState.DESTINATION_AHEAD and item.to_offset is not None and item.committed is not None
    ]
    if not ahead:
        return []
    return [
        f"would skip records: {listed(ahead)}, where they are on the source: kafka-consumer-groups.sh --reset-offsets on the "
        "destination takes them back"
    ]


def _where_moved(status: GroupStatus) -> str:
    """With what it reads again of what others, or it itself on the other side, have consumed already."""
    return f"{status.group} (reads {status.rereads:,} records twice)" if status.rereads else status.group


class LastWord(NamedTuple):
    """What was last said of a partition. ``position``: next source offset to copy; ``end``: of the source, as last
    seen, open transactions included; -1: not known. ``behind_seconds``: since when there is something left to copy."""

    position: int = -1
    end: int = -1
    behind_seconds: float = 0.0
    at_ms: int = 0

    @property
    def known(self) -> bool:
        return self.position >= 0 and self.end >= 0


LastWords = Mapping[TopicPartition, LastWord]


class LastWordsRead:
    """Of every planned partition, as reports are read, in whatever order. What an application knows no more that was
    started since, an earlier one has said."""

    def __init__(self, plans: Mapping[str, Plan]) -> None:
        self.words = {
            TopicPartition(topic.source, number): LastWord()
            for plan in plans.values()
            for topic in plan.topics
            for number in range(len(topic.slots))
        }
        self._known_ms = dict.fromkeys(self.words, (-1, -1))  # when position and end were said

    def take(self, report: Report | ReportChanges) -> None:
        """Take in what was reported."""
        for row in report.partitions:
            place = TopicPartition(row.topic, row.partition)
            word = self.words.get(place)
            if word is None:
                continue
            at_ms = row.at_ms if row.at_ms >= 0 else report.at_ms
            position_ms, end_ms = self._known_ms[place]
            if row.position >= 0 and at_ms >= position_ms:
                word, position_ms = word._replace(position=row.position), at_ms
            if row.end >= 0 and at_ms >= end_ms:
                word, end_ms = word._replace(end=row.end + row.held_back_records), at_ms
            if at_ms >= word.at_ms:
                held_seconds = (at_ms - row.held_since_ms) / 1000 if row.held_since_ms >= 0 else 0.0
                word = word._replace(behind_seconds=max(row.lag_seconds, held_seconds), at_ms=at_ms)
            self.words[place], self._known_ms[place] = word, (position_ms, end_ms)

    @property
    def complete(self) -> bool:
        """Nothing that was said before could be news."""
        return all(word.known for word in self.words.values())


def missing(positions: Ends, ends: Ends) -> tuple[MissingRecords, ...]:
    """What is known to be on the source and not on the destination.

    Args:
        positions: next source offset to copy; -1: not known.
        ends: of the source.
    """
    return tuple(
        MissingRecords(topic=place.topic, partition=place.partition, from_offset=positions[place], to_offset=end)
        for place, end in sorted(ends.items())
        if 0 <= positions.get(place, -1) < end
    )


def rpo_seconds(words: LastWords, source_seen_ms: int | None, at_ms: int) -> float | None:
    """How old the newest record was at most at ``at_ms`` that is on the destination, in the partition where that is longest
    ago.
    ``source_seen_ms``: when the source answered for the last time; None: not known."""
    if source_seen_ms is None or not all(word.known for word in words.values()):
        return None
    behind = [word.behind_seconds + (at_ms - word.at_ms) / 1000 for word in words.values() if word.behind_seconds > 0]
    return round(max([0.0, (at_ms - source_seen_ms) / 1000, *behind]), 3)


def lost(found: Sequence[MissingRecords], words: LastWords) -> Check:
    """What is known to be missing on the destination, in words."""
    unknown = [str(place) for place, word in sorted(words.items()) if not word.known]
    text = f"{records(found):,} offsets of {len(found)} partitions are known to be missing"
    text += f": {listed([_range(item) for item in found])}" if found else ""
    text += f"; of {len(unknown)} partitions nothing is known: {listed(unknown)}" if unknown else ""
    later = "what was written after the last look at the source is not known, nor which transactions are cut"
    return Check(Verdict.WARNING, f"{text}; {later}: strait tail list names both once the source is back")


def late(found: Sequence[MissingRecords]) -> Check:
    """Whether anything was written to the source after its producers had stopped."""
    if not found:
        return Check(Verdict.DONE, "nothing was written to the source meanwhile: no record is missing")
    text = f"{records(found):,} offsets were written to the source too late, and are not copied"
    return Check(Verdict.WARNING, f"{text}: {listed([_range(item) for item in found])}; strait start copies them")


def kept_groups(report: GroupSyncReport | None, now_ms: int) -> Check:
    """How far consumer groups have come on the destination, where the source cannot be asked any more."""
    if report is None:
        return Check(Verdict.WARNING, "the link does not synchronize consumer groups, or has not for a day")
    age = duration(max(0, now_ms - report.at_ms) / 1000)
    text = f"{report.in_sync:,} of {report.groups:,} groups were in sync {age} ago, at the last look at the source"
    return Check(
        Verdict.WARNING, f"{text}; what they consumed after it, and records beyond the copy, they consume again"
    )


def called(record: Failover) -> str:
    """What it is, in words."""
    return record.kind if record.kind == "rehearsal" else f"{record.kind} failover"


def summary(record: Failover) -> str:
    """A failover in a line."""
    ended = "" if record.rto_seconds is None else f" in {record.rto_seconds:,.1f} s"
    text = f"link {record.link}: {called(record)} {record.id} from {record.source} to {record.destination}: "
    text += f"{record.outcome}{ended}"
    if record.rpo_records is not None:
        text += f"; known to be missing: {record.rpo_records:,} offsets"
    if record.rpo_seconds is not None:
        text += f", at most {record.rpo_seconds:,.1f} s"
    if record.groups is not None:
        text += f"; consumer groups that continue exactly: {record.groups_exact} of {record.groups}"
    return text if record.score is None else f"{text}; {record.score} % of the steps hold"


def records(found: Sequence[MissingRecords]) -> int:
    """How many offsets that is; those of markers and of compacted records count too."""
    return sum(item.to_offset - item.from_offset for item in found)


def listed(items: Sequence[str]) -> str:
    """The first ones, and how many more there are."""
    more = len(items) - _LISTED_MOST
    return ", ".join(items[:_LISTED_MOST]) + (f" and {more:,} more" if more > 0 else "")


def _place(row: PartitionStatus) -> str:
    return row.topic if row.partition is None else f"{row.topic}-{row.partition}"


def _range(item: MissingRecords) -> str:
    return f"{item.topic}-{item.partition} from {item.from_offset:,} to {item.to_offset - 1:,}"


def _newest(writers: Mapping[TopicPartition, Sequence[Writer]], place: TopicPartition, now_ms: int) -> str:
    """Who wrote last, where a leader knows; producers without idempotence have no id."""
    found = max(writers.get(place, ()), key=lambda writer: writer.last_ms, default=None)
    if found is None:
        return ""
    return f" (producer id {found.producer_id}, last record {duration(max(0, now_ms - found.last_ms) / 1000)} old)"


def _moved(status: GroupStatus) -> bool:
    """It went on to the destination before, and is further there."""
    further = [item.state is OffsetState.DESTINATION_AHEAD for item in status.offsets]
    others = all(item.state is OffsetState.IN_SYNC or it for item, it in zip(status.offsets, further, strict=True))
    return status.moved and not status.note and any(further) and others


def _will(status: GroupStatus) -> bool:
    fits = (Fit.EXACT, Fit.AHEAD)
    return not status.note and all(item.state in _SOON and item.fit in fits for item in status.offsets)
