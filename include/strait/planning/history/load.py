"""Measures the load of each partition and derives the number of slots. Pure.

Load is the rate at which producers write, not the replication rate: a slot with a backlog copies as fast as it can,
which does not show how much work it has. So load is derived from the growth of the source's last stable offset between
two reports of a partition.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from strait.config.groups import Group
from strait.config.links import Link
from strait.model import TopicPartition
from strait.state.report_records import PartitionReport, Report
from strait.state.schema import Plan
from strait.state.slot_reports import lag_seconds

WINDOW_SECONDS = 60.0
"""Time between the two reports that a load is derived from, if reports go back that far."""

SHORTEST_SECONDS = 10.0
"""Minimum time between the two reports: batches arrive in bursts, so a shorter time gives no meaningful rate."""

STALE_MS = 15_000
"""A slot reports once per second; a report older than this does not describe the present."""

CATCH_UP_SECONDS = 600.0
"""A backlog counts as the load that would replicate it within this time."""

FULL = 0.7
"""Slots are removed only if the others are then at most this full, so that fluctuation does not bring them back."""

MOST_PARTITIONS_PER_SLOT = 10_000
"""A slot has one thread. This many partitions take some 70 MB, and each lookup, plan or report of all of them
interrupts replication for 0.1 s (`benchmarks/results-slot-size.md`)."""

Reports = Mapping[tuple[str, int], Sequence[Report]]


@dataclass(frozen=True, slots=True)
class Load:
    """Load of one partition. ``bytes_per_second`` None: not measured. ``lag_seconds``: 0 before the first record."""

    bytes_per_second: float | None
    lag_records: int
    lag_seconds: float
    caught_up: bool


@dataclass(frozen=True, slots=True)
class _Seen:
    at_ms: int
    item: PartitionReport
    lag_seconds: float


def depends_on_load(link: Link) -> bool:
    """Return whether planning depends on load: there are several slots to choose from, or a backfill task group."""
    return link.backfill is not None or sum(group.most_slots for group in link.groups.values()) > 1


def loads_of(earlier: Reports, later: Reports, now_ms: int) -> dict[TopicPartition, Load]:
    """Return the load of every partition reported within the last `STALE_MS`, by any slot of any task group."""
    before = _newest(earlier)
    found = {}
    for partition, now in _newest(later).items():
        if now_ms - now.at_ms <= STALE_MS and now.item.end >= 0:
            item = now.item
            rate = _bytes_per_second(before.get(partition), now)
            found[partition] = Load(rate, item.lag_records, now.lag_seconds, item.state == "caught_up")
    return found


def rates(loads: Mapping[TopicPartition, Load]) -> dict[TopicPartition, float]:
    """Return bytes per second of the partitions for which they are known."""
    return {tp: load.bytes_per_second for tp, load in loads.items() if load.bytes_per_second is not None}


def slots_for(
    group: Group,
    partitions: Collection[TopicPartition],
    measured: Mapping[TopicPartition, float],
    previous: int,
) -> int:
    """Return how many slots a task group needs: more immediately, fewer only if the lower load is certain to last.

    Args:
        measured: bytes per second of the partitions that were measured.
        previous: current number of slots; 0 if there was no plan.
    """
    most = max(group.slots, min(group.most_slots, len(partitions)))
    present = max(group.slots, min(most, previous))
    known = [measured[partition] for partition in partitions if partition in measured]
    for_count = math.ceil(len(partitions) / MOST_PARTITIONS_PER_SLOT)
    needed = max(for_count, math.ceil(sum(known) / group.slot_bytes_per_second))
    if needed > present:
        return min(needed, most)
    if len(known) == len(partitions):
        fewest = max(group.slots, for_count, math.ceil(sum(known) / (group.slot_bytes_per_second * FULL)))
        return min(present, fewest)
    return present


def cores_for(link: Link, plan: Plan) -> int:
    """Return how many slots the application of a plan must be able to run.

    With a local master and in a pool, the maximum number of slots: a thread or a slot without partitions costs nothing,
    and resubmitting the application would. The cores of a cluster are expensive, so there the application has as many as the plan needs, and is resubmitted if
    it needs more.
    """
    group = link.groups.get(plan.group)
    is_free = link.spark.master == "local" or link.pool is not None
    return max(plan.slots, group.most_slots) if group is not None and is_free else plan.slots


def _bytes_per_second(before: _Seen | None, now: _Seen) -> float | None:
    size = _record_bytes(now.item) or (_record_bytes(before.item) if before else None)
    if before is None or before.item.end < 0 or now.at_ms - before.at_ms < SHORTEST_SECONDS * 1000:
        return None
    seconds = (now.at_ms - before.at_ms) / 1000
    written = max(0, now.item.end - before.item.end)
    if size is None:  # nothing was replicated, so the size of its records is unknown
        return None if written or now.item.lag_records else 0.0
    return size * (written / seconds + now.item.lag_records / CATCH_UP_SECONDS)


def _record_bytes(item: PartitionReport) -> float | None:
    return item.bytes / item.records if item.records else None


def _newest(reports: Reports) -> dict[TopicPartition, _Seen]:
    found: dict[TopicPartition, _Seen] = {}
    for partition, seen in _all(reports):
        if partition not in found or seen.at_ms > found[partition].at_ms:
            found[partition] = seen
    return found


def _all(reports: Reports) -> Iterator[tuple[TopicPartition, _Seen]]:
    for parts in reports.values():
        for report in parts:
            for item in report.partitions:
                yield TopicPartition(item.topic, item.partition), _Seen(report.at_ms, item, lag_seconds(item, report))
