"""How much there is to copy of topics that begin to be copied, and how long that takes. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from strait.config.links import Link
from strait.model import TopicPartition
from strait.planning.history.overrun import duration
from strait.planning.plan.planner import Proposal
from strait.planning.topics.policies import start_of
from strait.planning.topics.start_offsets import OutOfRange, Range, StartAt, first_offset, start_at
from strait.state.schema import Report

ASSUMED_RECORD_BYTES = 1000
"""Of records of which nothing is known: neither how large their topic is, nor how large others of the link are."""

Reports = Mapping[tuple[str, int], Sequence[Report]]


@dataclass(frozen=True, slots=True)
class TopicBackfill:
    """What a topic holds that is to be copied. ``bytes_from``: `log` (from the brokers' disks), `link` (from the
    average of what the link copies) or `guess`."""

    topic: str
    partitions: int
    records: int
    bytes: int
    bytes_from: str


@dataclass(frozen=True, slots=True)
class Backfill:
    """All of it.

    Attributes:
        bytes_per_second: how fast the link copies while something waits; None: it has not had to hurry.
        limit: the link's budget; None: it has none.
    """

    topics: tuple[TopicBackfill, ...] = ()
    bytes_per_second: float | None = None
    limit: int | None = None

    @property
    def bytes(self) -> int:
        return sum(item.bytes for item in self.topics)

    @property
    def records(self) -> int:
        return sum(item.records for item in self.topics)

    @property
    def seconds(self) -> float | None:
        """At the measured rate, or at the budget's where that is lower; None: not known."""
        rates = [rate for rate in (self.bytes_per_second, self.limit) if rate]
        return self.bytes / min(rates) if rates else None

    def lines(self) -> Iterator[str]:
        """For people; nothing where there is nothing to copy."""
        for item in self.topics:
            if item.records:
                yield f"backfill  {item.topic}: {item.records:,} records, {_size(item)}"
        if self.records:
            yield f"backfill  in all {self.records:,} records, {self.bytes / 1e6:,.1f} MB, {self._how_long()}"

    def _how_long(self) -> str:
        if self.seconds is None:
            return "duration unknown: no backlog has been measured on this link yet"
        rate = min(rate for rate in (self.bytes_per_second, self.limit) if rate)
        of = "its budget" if rate == self.limit else "what it copies now"
        return f"about {duration(self.seconds)} at {rate / 1e6:,.2f} MB/s, {of}"


def starts_at(link: Link, proposal: Proposal) -> dict[TopicPartition, StartAt]:
    """Where each partition begins that is to be copied for the first time, its topic made already or not."""
    found = {partition: beginning.fresh.begin for partition, beginning in proposal.survey.new.items()}
    for item in proposal.create:
        start = start_of(link, item.source)
        found |= {TopicPartition(item.source, number): start_at(start, number) for number in range(item.partitions)}
    return found


def backfill_of(
    link: Link,
    begins: Mapping[TopicPartition, StartAt],
    ranges: Mapping[TopicPartition, Range],
    sizes: Mapping[TopicPartition, int],
    reports: Reports,
) -> Backfill:
    """Put it together.

    Args:
        ranges: what the source holds of each partition; those of which it is not known are left out.
        sizes: bytes of whole partitions on their brokers' disks, as far as they may be known.
        reports: the present ones of the link.
    """
    average = _record_bytes(reports)
    totals: dict[str, list[tuple[int, float, str]]] = defaultdict(list)
    for partition, begin in sorted(begins.items()):
        held = ranges.get(partition)
        first = OutOfRange("") if held is None else first_offset(begin, held)
        if held is None or isinstance(first, OutOfRange):
            continue
        records = max(0, held.end - max(first, held.first))
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
    return Backfill(topics, _rate(reports), link.topics.budget.bytes_per_second)


def _size(item: TopicBackfill) -> str:
    how = {"log": "", "link": ", by the link's average record", "guess": f", at {ASSUMED_RECORD_BYTES:,} bytes each"}
    return f"{item.bytes / 1e6:,.1f} MB{how[item.bytes_from]}"


def _record_bytes(reports: Reports) -> float | None:
    rows = [item for parts in reports.values() for report in parts for item in report.partitions]
    records = sum(item.records for item in rows)
    return sum(item.bytes for item in rows) / records if records else None


def _rate(reports: Reports) -> float | None:
    """Of the slots that have something to catch up with: what the others write says how much comes, not how fast they
    are."""
    busy = {
        (report.group, report.slot, report.application): report.bytes_per_second
        for parts in reports.values()
        for report in parts
        if any(item.lag_records > 0 for item in report.partitions)
    }
    return sum(busy.values()) or None
