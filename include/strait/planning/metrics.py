"""Sums up a link's status into one line of figures for each topic. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from strait.planning.status import PartitionStatus, Status
from strait.state.schema import Report, Run

Reports = Mapping[tuple[str, int], Sequence[Report]]
Runs = Mapping[tuple[str, int], Sequence[Run]]


@dataclass(frozen=True, slots=True)
class TopicMetrics:
    """One topic of a task group.

    Attributes:
        partitions: 0 where not even their number is known.
        records: copied by the link in all its life.
        records_per_second: between the two looks.
        lag_records, lag_seconds: of all partitions together, and of the one furthest behind.
        waiting: reason -> number of partitions that wait for it.
        starting: partitions that no slot has taken up yet.
    """

    topic: str
    partitions: int
    records: int
    records_per_second: float
    lag_records: int
    lag_seconds: float
    waiting: Mapping[str, int]
    starting: int

    def __str__(self) -> str:
        parts = [
            f"{self.topic}: {self.records:,} records copied",
            f"{self.records_per_second:,.0f}/s",
            f"lag {self.lag_records:,} records, {self.lag_seconds:.1f} s",
        ]
        parts += [f"{count} of {self.partitions} partitions wait: {why}" for why, count in sorted(self.waiting.items())]
        if self.starting:
            parts.append(f"{self.starting} of {self.partitions} partitions start")
        return "; ".join(parts)


def topic_metrics(status: Status, runs: Runs, earlier: Reports, later: Reports) -> list[TopicMetrics]:
    """The figures of every topic of the task group, by name.

    Args:
        status: of the whole group, made from ``later``.
        runs: (source topic, partition) -> its runs, by sequence_base.
        earlier, later: reports by (group, slot), read some seconds apart.
    """
    before, now = _positions(status.group, earlier), _positions(status.group, later)
    found = []
    for topic, of_topic in groupby(status.partitions, key=lambda row: row.topic):
        rows = list(of_topic)
        numbered = [row for row in rows if row.partition is not None]
        found.append(
            TopicMetrics(
                topic=topic,
                partitions=len(numbered),
                records=sum(_copied(runs.get((topic, row.partition or 0), ()), row) for row in numbered),
                records_per_second=sum(_rate(before, now, (topic, row.partition or 0)) for row in numbered),
                lag_records=sum(max(0, row.lag_records) for row in rows),
                lag_seconds=max(0.0, *(row.lag_seconds for row in rows)),
                waiting=Counter(row.reason for row in rows if row.state == "waiting"),
                starting=sum(row.state == "starting" for row in rows),
            )
        )
    return found


def _copied(runs: Sequence[Run], row: PartitionStatus) -> int:
    """The sequence of the next record to copy: the number of records copied so far."""
    behind = [run for run in runs if run.source_base <= row.position]
    if not behind:
        return 0
    run = max(behind, key=lambda run: run.sequence_base)
    return run.sequence_base + row.position - run.source_base


def _positions(group: str, reports: Reports) -> dict[tuple[str, int], tuple[int, int]]:
    """(topic, partition) -> (when reported, position), the furthest: a partition may have two owners for a while."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for (of_group, _), parts in reports.items():
        for report in parts if of_group == group else ():
            for entry in report.partitions:
                key = (entry.topic, entry.partition)
                if entry.position > found.get(key, (0, -1))[1]:
                    found[key] = (report.at_ms, entry.position)
    return found


def _rate(
    before: Mapping[tuple[str, int], tuple[int, int]],
    now: Mapping[tuple[str, int], tuple[int, int]],
    key: tuple[str, int],
) -> float:
    if key not in before or key not in now or now[key][0] <= before[key][0]:
        return 0.0
    return max(0, now[key][1] - before[key][1]) * 1000 / (now[key][0] - before[key][0])
