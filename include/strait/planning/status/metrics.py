"""Sums up a link's status as metrics per topic. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from strait.model import TopicPartition
from strait.planning.history.overrun import WARN_SECONDS
from strait.planning.status import figures
from strait.planning.status.rows import PartitionStatus, longest_held_back, longest_lag
from strait.planning.status.status import Status, known_total
from strait.planning.status.words import word
from strait.reasons import Reason
from strait.state.offset_map import source_offset
from strait.state.report_records import Report
from strait.state.schema import OffsetMapping, Plan
from strait.text import duration, plural

Reports = Mapping[tuple[str, int], Sequence[Report]]
Runs = Mapping[tuple[str, int], Sequence[OffsetMapping]]
_NO_DESTINATION = (
    Reason.DESTINATION_MISSING,
    Reason.DESTINATION_DELETED,
    Reason.DESTINATION_HAS_FEWER_PARTITIONS,
)


@dataclass(frozen=True, slots=True)
class TopicMetrics:
    """One topic of a task group.

    Attributes:
        partitions: 0 if even their number is unknown.
        records: replicated by the link in its lifetime.
        records_per_second: average between the two sets of reports; None: no partition was reported in both.
        lag_records, lag_seconds: total and maximum of the partitions for which they are known; None: of none.
        lag_unknown: number of the other partitions.
        held_back_records, held_back_seconds: held back by open transactions on the source; sum and maximum.
        waiting: reason -> number of partitions that wait for it.
        starting: partitions that no slot has started yet.
        seconds_to_loss: time until retention reaches unreplicated records of any partition, if that made no progress;
            None: not foreseen.
    """

    topic: str
    partitions: int
    records: int
    records_per_second: float | None
    lag_records: int | None
    lag_seconds: float | None
    held_back_records: int | None
    held_back_seconds: float | None
    waiting: Mapping[str, int]
    starting: int
    seconds_to_loss: float | None = None
    lag_unknown: int = 0

    def __str__(self) -> str:
        parts = [
            f"{self.topic}: {plural(self.records, 'record')} copied",
            f"{figures.count(self.records_per_second)} records/s",
            f"lag {figures.at_least(self.lag_records, self.lag_unknown)} records, {figures.lasting(self.lag_seconds)}",
        ]
        waiting = f"of {plural(self.partitions, 'partition')} {word('waiting')}"
        parts += [f"{count} {waiting}: {why}" for why, count in sorted(self.waiting.items())]
        if self.held_back_records:
            parts.append(f"{plural(self.held_back_records, 'record')} held back by open transactions")
        if self.starting:
            parts.append(f"{self.starting} of {plural(self.partitions, 'partition')} {word('starting')}")
        if self.seconds_to_loss is not None and self.seconds_to_loss < WARN_SECONDS:
            parts.append(f"retention deletes what is not copied in {duration(self.seconds_to_loss)}")
        return "; ".join(parts)


def topic_metrics(status: Status, runs: Runs, earlier: Reports, later: Reports) -> list[TopicMetrics]:
    """Return the metrics of every topic of the task group, by name.

    Args:
        status: of the whole task group, made from ``later``.
        runs: (source topic, partition) -> its offset segments, by sequence_base.
        earlier, later: reports by (task group, slot), read some seconds apart.
    """
    before, now = _positions(status.group, earlier), _positions(status.group, later)
    found = []
    for topic, of_topic in groupby(status.partitions, key=lambda row: row.topic):
        rows = list(of_topic)
        losing = [row.seconds_to_loss for row in rows if row.seconds_to_loss is not None]
        numbered = [row for row in rows if row.partition is not None]
        found.append(
            TopicMetrics(
                topic=topic,
                partitions=len(numbered),
                records=sum(_copied(runs.get((topic, row.partition or 0), ()), row) for row in numbered),
                records_per_second=known_total(_rate(before, now, (topic, row.partition or 0)) for row in numbered),
                lag_records=known_total(row.lag_records for row in rows),
                lag_seconds=longest_lag(rows),
                held_back_records=known_total(row.held_back_records for row in rows),
                held_back_seconds=longest_held_back(rows),
                waiting=Counter(row.reason for row in rows if row.state == "waiting"),
                starting=sum(row.state == "starting" for row in rows),
                seconds_to_loss=min(losing) if losing else None,
                lag_unknown=sum(row.lag_records < 0 for row in rows),
            )
        )
    return found


def written_records(runs: Runs, statuses: Iterable[Status]) -> dict[TopicPartition, int]:
    """Return how many records the link has ever written to each partition.

    The number is as current as the offset map and the newest reports.
    """
    found = {TopicPartition(*place): max(run.sequence_end for run in some) for place, some in runs.items()}
    for status in statuses:
        for row in status.partitions:
            if row.partition is not None:
                where = TopicPartition(row.topic, row.partition)
                found[where] = max(found.get(where, 0), row.written)
    return found


def missing_destination_partitions(plan: Plan) -> int:
    """Return how many partitions of selected topics are not replicated because the destination does not have them."""
    return sum(len(item.partitions) for item in plan.waiting if item.reason in _NO_DESTINATION)


def _copied(runs: Sequence[OffsetMapping], row: PartitionStatus) -> int:
    """Return the number of records replicated so far into the current destination topic."""
    if not runs:
        return 0
    newest = max(runs, key=lambda run: (run.checkpoint_at_ms, run.sequence_base))
    ids = newest.source_id, newest.destination_id
    behind = [run for run in runs if (run.source_id, run.destination_id) == ids and run.source_base <= row.position]
    if not behind:
        return newest.sequence_base
    run = max(behind, key=lambda run: (run.sequence_base, run.sequence_end))
    longest = range(run.sequence_base, run.sequence_base + row.position - run.source_base)
    return run.sequence_base + bisect_left(longest, row.position, key=partial(source_offset, run))


def _positions(group: str, reports: Reports) -> dict[tuple[str, int], tuple[int, int]]:
    """Return (topic, partition) -> (time of the report in ms, position).

    The furthest position is used: a partition may have two owners for a while.
    """
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
) -> float | None:
    if key not in before or key not in now or now[key][0] <= before[key][0]:
        return None
    return max(0, now[key][1] - before[key][1]) * 1000 / (now[key][0] - before[key][0])
