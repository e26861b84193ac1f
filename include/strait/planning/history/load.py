"""How much there is to copy, partition by partition, and how many slots that takes. Pure.

Load is what producers write, not what is copied: a slot that works off a backlog copies as fast as it can, which says
nothing of how much work it has. So it is taken from how the source's end moves between two reports of a partition.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from strait.config.groups import Group
from strait.config.links import Link
from strait.model import TopicPartition
from strait.state.schema import PartitionReport, Plan, Report
from strait.state.slot_reports import lag_seconds

WINDOW_SECONDS = 60.0
"""Between the two reports that a load is taken from, where they reach back so far."""

SHORTEST_SECONDS = 10.0
"""Reports that are closer together say nothing: batches come in bursts."""

STALE_MS = 15_000
"""A slot reports once a second; what one said longer ago is not the present."""

CATCH_UP_SECONDS = 600.0
"""What waits counts as load so that it would be copied within this time."""

FULL = 0.7
"""Slots are taken away only if the others are then no fuller than this, so that noise does not bring them back."""

MOST_PARTITIONS_PER_SLOT = 10_000
"""A slot has one thread. With so many partitions it takes some 70 MB for them, and a tenth of a second in which nothing is
copied for each look-up, plan or report of all of them (`benchmarks/results-slot-size.md`)."""

Reports = Mapping[tuple[str, int], Sequence[Report]]


@dataclass(frozen=True, slots=True)
class Load:
    """One partition. ``bytes_per_second`` None: not known yet. ``lag_seconds`` is 0 before anything was copied."""

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
    """Whether anything is decided by it: there are places to choose from, or partitions to send to another lane."""
    return link.backfill is not None or sum(group.most_slots for group in link.groups.values()) > 1


def loads_of(earlier: Reports, later: Reports, now_ms: int) -> dict[TopicPartition, Load]:
    """The load of every partition that was heard of just now, whichever slot of whichever task group said it."""
    before = _newest(earlier)
    found = {}
    for partition, now in _newest(later).items():
        if now_ms - now.at_ms <= STALE_MS and now.item.end >= 0:
            item = now.item
            rate = _bytes_per_second(before.get(partition), now)
            found[partition] = Load(rate, item.lag_records, now.lag_seconds, item.state == "caught_up")
    return found


def rates(loads: Mapping[TopicPartition, Load]) -> dict[TopicPartition, float]:
    """Bytes a second, of those of which they are known."""
    return {tp: load.bytes_per_second for tp, load in loads.items() if load.bytes_per_second is not None}


def slots_for(
    group: Group,
    partitions: Collection[TopicPartition],
    measured: Mapping[TopicPartition, float],
    previous: int,
) -> int:
    """How many slots a task group needs for its partitions: more at once, fewer only when that is sure to last.

    Args:
        measured: bytes a second of the partitions that were measured.
        previous: how many slots there are; 0 where there was no plan.
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
    """How many slots the application of a plan must be able to run.

    With a local master as many as there may ever be: its threads cost nothing, and another submission would. A
    cluster's cores are dear, so there it has what the plan needs and is submitted again when that is more.
    """
    group = link.groups.get(plan.group)
    return max(plan.slots, group.most_slots) if group is not None and link.spark.master == "local" else plan.slots


def _bytes_per_second(before: _Seen | None, now: _Seen) -> float | None:
    size = _record_bytes(now.item) or (_record_bytes(before.item) if before else None)
    if before is None or before.item.end < 0 or now.at_ms - before.at_ms < SHORTEST_SECONDS * 1000:
        return None
    seconds = (now.at_ms - before.at_ms) / 1000
    written = max(0, now.item.end - before.item.end)
    if size is None:  # nothing was copied, so nobody knows how large its records are
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
