"""Estimates the backlog of topics whose replication starts, and how long it takes to replicate. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from strait.config.hours import Hours
from strait.config.links import Link
from strait.model import TopicPartition
from strait.planning.assignment.backfill_routing import is_long
from strait.planning.plan.planner import Proposal
from strait.planning.topics.policies import start_of
from strait.planning.topics.start_offsets import OutOfRange, Range, StartAt, after_copies, first_offset, start_at
from strait.state.report_records import Report
from strait.text import data_size, duration, plural

ASSUMED_RECORD_BYTES = 1000
"""Record size in bytes to assume if neither the size of the topic nor that of the link's other records is known."""

Reports = Mapping[tuple[str, int], Sequence[Report]]


@dataclass(frozen=True, slots=True)
class TopicBackfill:
    """Backlog of one topic.

    ``bytes_from``: `log` (from the brokers' disks), `link` (from the average record that the link replicates) or
    `guess`.
    """

    topic: str
    partitions: int
    records: int
    bytes: int
    bytes_from: str


@dataclass(frozen=True, slots=True)
class Backfill:
    """Backlog of all topics whose replication starts.

    Attributes:
        bytes_per_second: combined rate of the link's lagging slots; None: no backlog has been measured.
        limit: budget in bytes per second, of the link or of its backfill task group; None: it has none.
        hours: those of the backfill task group, if it copies the backlog; None: any.
        now_ms: time at which replication starts.
    """

    topics: tuple[TopicBackfill, ...] = ()
    bytes_per_second: float | None = None
    limit: int | None = None
    hours: Hours | None = None
    now_ms: int = 0

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.topics)

    @property
    def records(self) -> int:
        return sum(item.records for item in self.topics)

    @property
    def seconds(self) -> float | None:
        """Time to replicate the backlog at the measured rate, or at the budget if that is lower, with the hours in which it
        is not replicated; None: unknown."""
        rates = [rate for rate in (self.bytes_per_second, self.limit) if rate]
        seconds = self.bytes / min(rates) if rates else None
        return seconds if seconds is None or self.hours is None else self.hours.elapsing(self.now_ms)(seconds)

    def lines(self) -> Iterator[str]:
        """Yield human-readable lines; none if there is no backlog."""
        for item in self.topics:
            if item.records:
                yield f"backfill  {item.topic}: {plural(item.records, 'record')}, {_size(item)}"
        if self.records:
            yield f"backfill  in all {plural(self.records, 'record')}, {data_size(self.bytes)}, {self._how_long()}"

    def _how_long(self) -> str:
        if self.seconds is None:
            return "duration unknown: no backlog has been measured on this link yet"
        rate = min(rate for rate in (self.bytes_per_second, self.limit) if rate)
        of = "its budget" if rate == self.limit else "what it copies now"
        only = "" if self.hours is None else f", copied only {self.hours}"
        return f"about {duration(self.seconds)} at {data_size(rate)}/s, {of}{only}"


def starts_at(link: Link, proposal: Proposal) -> dict[TopicPartition, StartAt]:
    """Return the start of each partition to be replicated for the first time.

    Includes partitions whose destination topic does not exist yet.
    """
    found = {partition: beginning.fresh.begin for partition, beginning in proposal.survey.new.items()}
    for item in proposal.create:
        start = start_of(link, item.source)
        for partition in (TopicPartition(item.source, number) for number in range(item.partitions)):
            moved_in = proposal.survey.moved_in.get(partition, 0)
            found[partition] = after_copies(start_at(start, partition.partition), moved_in)
    return found


def backfill_of(
    link: Link,
    begins: Mapping[TopicPartition, StartAt],
    ranges: Mapping[TopicPartition, Range],
    sizes: Mapping[TopicPartition, int],
    reports: Reports,
    now_ms: int = 0,
    ends: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> Backfill:
    """Compute the backlog of each topic from start offsets, ranges and sizes.

    Args:
        ranges: partition -> the offsets that the source holds; partitions whose range is unknown are skipped.
        sizes: bytes of whole partitions on their brokers' disks, as far as this principal may read them.
        reports: the latest reports of the link.
        ends: the source offsets before which copies end.
    """
    average = _record_bytes(reports)
    totals: dict[str, list[tuple[int, float, str]]] = defaultdict(list)
    most = 0
    for partition, begin in sorted(begins.items()):
        held = ranges.get(partition)
        first = OutOfRange("") if held is None else first_offset(begin, held)
        if held is None or isinstance(first, OutOfRange):
            continue
        records = max(0, min(held.end, ends.get(partition, held.end)) - max(first, held.first))
        most = max(most, records)
        if partition in sizes and held.end > held.first:
            totals[partition.topic].append((records, sizes[partition] * records / (held.end - held.first), "log"))
        elif average is not None:
            totals[partition.topic].append((records, average * records, "link"))
        else:
            totals[partition.topic].append((records, ASSUMED_RECORD_BYTES * records, "guess"))
    topics = tuple(
        TopicBackfill(
            topic,
            len(rows),
            sum(records for records, _, _ in rows),
            round(sum(size for _, size, _ in rows)),
            max((known for _, _, known in rows), key=("log", "link", "guess").index),
        )
        for topic, rows in totals.items()
    )
    own = link.topics.budget.backfill if link.backfill is not None and is_long(most, link.backfill) else None
    limits = (link.topics.budget.bytes_per_second, None if own is None else own.bytes_per_second)
    limit = min((limit for limit in limits if limit is not None), default=None)
    return Backfill(topics, _rate(reports), limit, None if own is None else own.opening, now_ms)


def _size(item: TopicBackfill) -> str:
    how = {"log": "", "link": ", by the link's average record", "guess": f", at {ASSUMED_RECORD_BYTES:,} bytes each"}
    return f"{data_size(item.bytes)}{how[item.bytes_from]}"


def _record_bytes(reports: Reports) -> float | None:
    rows = [item for parts in reports.values() for report in parts for item in report.partitions]
    records = sum(item.records for item in rows)
    return sum(item.bytes for item in rows) / records if records else None


def _rate(reports: Reports) -> float | None:
    """Return the bytes per second of slots that lag; None if there are none.

    The rate of the others shows how much is produced, not how fast they can replicate.
    """
    busy = {
        (report.group, report.slot, report.application): report.bytes_per_second
        for parts in reports.values()
        for report in parts
        if any(item.lag_records > 0 for item in report.partitions)
    }
    return sum(busy.values()) or None
