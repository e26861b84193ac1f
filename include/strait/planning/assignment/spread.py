"""Which slot copies which partition. Pure and deterministic.

Moving a partition between slots is always safe, but costs it a moment; so nothing moves without a reason.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping

from strait.model import TopicPartition
from strait.planning.assignment.balance import Balance

TOO_MUCH = 1.3
"""A slot with this many times the mean of all slots gives partitions away, …"""

ENOUGH = 1.1
"""… until it has no more than this. What lies in between is noise, and moves nothing."""

WORTH_BYTES_PER_SECOND = 1_000_000
"""A slot that exceeds the mean by less than this is left alone: no slot is slowed down by so little."""

Loads = Mapping[TopicPartition, float]


def assign(
    partitions: Iterable[TopicPartition],
    previous: Mapping[TopicPartition, int],
    slots: int,
    previous_slots: int,
    loads: Loads | None = None,
) -> dict[TopicPartition, int]:
    """Give each partition a slot from 0 to ``slots`` - 1.

    A partition stays where it is. One that is new, or whose slot is gone, goes to the slot with the least to do, the
    heaviest first. Others move only where slots were added, no more than evens the slots out, and where a slot has
    clearly too much to do, no more than relieves it.

    Args:
        previous: where partitions are now; may name partitions that are no longer wanted.
        previous_slots: how many slots there were; 0 where there was no plan.
        loads: bytes a second of those that were measured. What is not measured counts as much as the others on average.
    """
    wanted = sorted(dict.fromkeys(partitions))  # in their order as they come, which sorts in no time
    measured = loads or {}
    weights = weights_of(wanted, measured)
    assigned: dict[TopicPartition, int] = {}
    unassigned = []
    for partition in wanted:
        slot = previous.get(partition)
        if slot is not None and slot < slots:
            assigned[partition] = slot
        else:
            unassigned.append(partition)
    _house(assigned, unassigned, weights, slots)
    if slots > previous_slots > 0:
        Balance(assigned, weights, slots).level(min_gain=_half_an_ordinary_one(weights))
    elif slots == previous_slots:
        # By what was measured alone: one that was added just now moves no other before it is known.
        known = {partition: weights[partition] for partition in wanted if partition in measured}
        Balance(assigned, known, slots).relieve(TOO_MUCH, ENOUGH, WORTH_BYTES_PER_SECOND)
    return assigned


def weights_of(partitions: Collection[TopicPartition], loads: Loads) -> dict[TopicPartition, int]:
    """How much each partition counts: its load, and a little for being there, since an idle one has its cost too.

    Whole numbers, so that sums do not depend on an order.
    """
    if not loads:
        return dict.fromkeys(partitions, 1)
    measured = {partition: round(loads[partition]) for partition in partitions if partition in loads}
    mean = sum(measured.values()) // len(measured) if measured else 0
    presence = max(1, mean // 10)
    return {partition: measured.get(partition, mean) + presence for partition in partitions}


def _half_an_ordinary_one(weights: Mapping[TopicPartition, int]) -> int:
    """What a move must gain at least. The median: a few hot partitions say nothing about the others."""
    ordered = sorted(weights.values())
    return max(1, ordered[len(ordered) // 2] // 2) if ordered else 1


def _house(
    assigned: dict[TopicPartition, int],
    unassigned: Iterable[TopicPartition],
    weights: Mapping[TopicPartition, int],
    slots: int,
) -> None:
    """Each to the slot with the least to do by then. ``unassigned`` is in order, and stays so among equals."""
    sums = [0] * slots
    for partition, slot in assigned.items():
        sums[slot] += weights[partition]
    lightest = [(load, slot) for slot, load in enumerate(sums)]
    heapq.heapify(lightest)
    for partition in sorted(unassigned, key=weights.__getitem__, reverse=True):
        load, slot = lightest[0]
        assigned[partition] = slot
        heapq.heapreplace(lightest, (load + weights[partition], slot))
