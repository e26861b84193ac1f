"""Sums up what slots report into one line of figures for each topic. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from strait.state.schema import PartitionReport, Plan, Report, Run, Waiting

Reports = Mapping[tuple[str, int], Sequence[Report]]
Runs = Mapping[tuple[str, int], Sequence[Run]]
_Latest = Mapping[tuple[str, int], tuple[int, PartitionReport]]


@dataclass(frozen=True, slots=True)
class TopicMetrics:
    """One topic of a task group.

    Attributes:
        records: copied by the link in all its life.
        records_per_second: between the two looks.
        lag_records, lag_seconds: of all partitions together, and of the one furthest behind.
        waiting: reason -> number of partitions that wait for it.
        unknown: number of planned partitions that no slot has reported.
    """

    topic: str
    partitions: int
    records: int
    records_per_second: float
    lag_records: int
    lag_seconds: float
    waiting: Mapping[str, int]
    unknown: int

    def __str__(self) -> str:
        parts = [
            f"{self.topic}: {self.records:,} records copied",
            f"{self.records_per_second:,.0f}/s",
            f"lag {self.lag_records:,} records, {self.lag_seconds:.1f} s",
        ]
        if self.waiting:
            listed = ", ".join(f"{count} {reason}" for reason, count in sorted(self.waiting.items()))
            parts.append(f"waiting of {self.partitions} partitions: {listed}")
        if self.unknown:
            parts.append(f"not reported of {self.partitions} partitions: {self.unknown}")
        return "; ".join(parts)


def topic_metrics(plan: Plan, runs: Runs, earlier: Reports, later: Reports) -> list[TopicMetrics]:
    """The figures of every topic of the plan, waiting ones included, by name.

    Args:
        runs: (source topic, partition) -> its runs, by sequence_base.
        earlier, later: reports by (group, slot), read some seconds apart.
    """
    before, now = _by_partition(plan.group, earlier), _by_partition(plan.group, later)
    partitions = {topic.source: len(topic.slots) for topic in plan.topics}
    return [
        _of_topic(topic, partitions.get(topic, 0), plan.waiting, runs, before, now)
        for topic in sorted(partitions.keys() | {item.topic for item in plan.waiting})
    ]


def _of_topic(
    topic: str, partitions: int, planned_waiting: Sequence[Waiting], runs: Runs, before: _Latest, now: _Latest
) -> TopicMetrics:
    reported = {n: now[topic, n] for n in range(partitions) if (topic, n) in now}
    waiting = Counter(entry.reason for _, entry in reported.values() if entry.state == "waiting" and entry.reason)
    not_copied = 0
    for item in planned_waiting:
        if item.topic == topic:
            not_copied += len(item.partitions) or partitions
            waiting[item.reason] += len(item.partitions) or max(1, partitions)
    return TopicMetrics(
        topic=topic,
        partitions=partitions,
        records=sum(_copied(runs.get((topic, n), ()), entry) for n, (_, entry) in reported.items()),
        records_per_second=sum(_rate(before.get((topic, n)), latest) for n, latest in reported.items()),
        lag_records=sum(entry.lag_records for _, entry in reported.values()),
        lag_seconds=max((entry.lag_seconds for _, entry in reported.values()), default=0.0),
        waiting=dict(waiting),
        unknown=max(0, partitions - len(reported) - not_copied),
    )


def _by_partition(group: str, reports: Reports) -> dict[tuple[str, int], tuple[int, PartitionReport]]:
    """(topic, partition) -> the furthest report of it and when that was made; a partition may have two owners."""
    found: dict[tuple[str, int], tuple[int, PartitionReport]] = {}
    for at_ms, entry in _entries(group, reports):
        key = (entry.topic, entry.partition)
        if key not in found or entry.position > found[key][1].position:
            found[key] = (at_ms, entry)
    return found


def _entries(group: str, reports: Reports) -> Iterator[tuple[int, PartitionReport]]:
    for (of_group, _), parts in reports.items():
        if of_group == group:
            for report in parts:
                for entry in report.partitions:
                    yield report.at_ms, entry


def _copied(runs: Sequence[Run], entry: PartitionReport) -> int:
    """The sequence of the next record to copy: the number of records copied so far."""
    if not runs or entry.position < 0:
        return 0
    run = max((r for r in runs if r.source_base <= entry.position), key=lambda r: r.sequence_base, default=runs[0])
    return run.sequence_base + max(0, entry.position - run.source_base)


def _rate(before: tuple[int, PartitionReport] | None, now: tuple[int, PartitionReport]) -> float:
    if before is None or before[1].position < 0 or now[0] <= before[0]:
        return 0.0
    return max(0, now[1].position - before[1].position) * 1000 / (now[0] - before[0])
