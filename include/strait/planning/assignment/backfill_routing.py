"""Chooses the task group of each partition: by the topic's rule, or the backfill task group for history. Pure.

A partition may move to another task group at any time, as it may move to another slot: the slot that takes it over
reads its position from the destination, so no record is lost or duplicated.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from strait.config.groups import Backfill
from strait.model import TopicPartition
from strait.planning.history.load import Load

CAUGHT_UP = 10
"""A partition returns to its own task group once its lag is at most 1 / `CAUGHT_UP` of the threshold that moved it."""


class Seen(NamedTuple):
    """Observed state of a link's partitions.

    Attributes:
        before: partition -> the task group that replicates it by the current plans.
        loads: partition -> its load by the latest reports.
        histories: new partition -> its backlog on the source, in records.
        takes_late: whether partitions with a large lag move, too.
    """

    before: Mapping[TopicPartition, str] = {}
    loads: Mapping[TopicPartition, Load] = {}
    histories: Mapping[TopicPartition, int] = {}
    takes_late: bool = True


def routes_of(
    partitions: Iterable[TopicPartition], own: Mapping[str, str], backfill: Backfill | None, seen: Seen
) -> dict[TopicPartition, str]:
    """Return the task group of every partition.

    Args:
        own: source topic -> the task group that it belongs to.
    """
    if backfill is None:
        return {partition: own[partition.topic] for partition in partitions}
    late = _late(own, backfill, seen) if seen.takes_late else {}
    return {partition: _lane(partition, own[partition.topic], backfill, seen, late) for partition in partitions}


def _lane(
    partition: TopicPartition, own: str, backfill: Backfill, seen: Seen, late: Mapping[TopicPartition, str]
) -> str:
    if own == backfill.group:
        return own
    if partition in seen.histories:
        return backfill.group if is_long(seen.histories[partition], backfill) else own
    if seen.before.get(partition) == backfill.group:
        load = seen.loads.get(partition)
        return own if load is not None and _has_caught_up(load, backfill) else backfill.group
    return backfill.group if partition in late else own


def _late(own: Mapping[str, str], backfill: Backfill, seen: Seen) -> dict[TopicPartition, str]:
    """Return the partitions that lag far, with their task groups.

    If more than half of a task group's partitions lag far, the group is slow, not they, and none of them is included.
    """
    behind: dict[TopicPartition, str] = {}
    heard: Counter[str] = Counter()
    for partition, load in seen.loads.items():
        group = own.get(partition.topic)
        if group is not None and seen.before.get(partition) == group:
            heard[group] += 1
            if _is_far_behind(load, backfill):
                behind[partition] = group
    lates = Counter(behind.values())
    return {partition: group for partition, group in behind.items() if 2 * lates[group] <= heard[group]}


def is_long(history: int, backfill: Backfill) -> bool:
    """Return whether the backfill task group copies a new partition with a backlog of ``history`` records."""
    if backfill.behind_records is not None and history >= backfill.behind_records:
        return True
    return backfill.behind_seconds is not None and history > 0  # the age of a backlog shows only in its records


def _is_far_behind(load: Load, backfill: Backfill) -> bool:
    if backfill.behind_records is not None and load.lag_records >= backfill.behind_records:
        return True
    return backfill.behind_seconds is not None and load.lag_seconds >= backfill.behind_seconds


def _has_caught_up(load: Load, backfill: Backfill) -> bool:
    if load.caught_up:
        return True
    if backfill.behind_records is not None and load.lag_records * CAUGHT_UP > backfill.behind_records:
        return False
    if backfill.behind_seconds is not None:
        # Nothing is replicated yet, so the age of the next record is unknown.
        unknown = load.lag_records > 0 and load.lag_seconds == 0
        return not unknown and load.lag_seconds * CAUGHT_UP <= backfill.behind_seconds
    return True
