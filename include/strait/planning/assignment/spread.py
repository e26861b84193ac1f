"""Assigns the partitions of a task group to its slots. Pure and deterministic.

Moving a partition between slots is always safe, but interrupts it for a moment, so nothing moves without a reason.
"""

import heapq
from collections.abc import Collection, Iterable, Mapping

from strait.model import TopicPartition
from strait.planning.assignment.balance import Balance

TOO_MUCH = 1.3
"""A slot with more than this multiple of the mean load of all slots gives partitions away, …"""

ENOUGH = 1.1
"""… until its load is at most this multiple. Loads between the two move nothing, since loads fluctuate."""

WORTH_BYTES_PER_SECOND = 1_000_000
"""A slot that exceeds the mean by less than this is left alone: so small an excess slows no slot down."""

Loads = Mapping[TopicPartition, float]


def assign(
    partitions: Iterable[TopicPartition],
    previous: Mapping[TopicPartition, int],
    slots: int,
    previous_slots: int,
    loads: Loads | None = None,
) -> dict[TopicPartition, int]:
    """Assign each partition to a slot from 0 to ``slots`` - 1.

    A partition keeps its slot. A new one, or one whose slot no longer exists, goes to the slot with the least load, the
    heaviest first. Others move only if slots were added, no more than balances the slots, or if a slot is clearly
    overloaded, no more than relieves it.

    Args:
        previous: partition -> its current slot; may contain partitions that are no longer replicated.
        previous_slots: current number of slots; 0 if there was no plan.
        loads: bytes per second of the partitions that were measured. Others count as the mean of these.
    """
    wanted = sorted(dict.fromkeys(partitions))  # they arrive in order, so sorting is fast
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
        # Only by measured loads: a partition that was just added moves no other before its load is known.
        known = {partition: weights[partition] for partition in wanted if partition in measured}
        Balance(assigned, known, slots).relieve(TOO_MUCH, ENOUGH, WORTH_BYTES_PER_SECOND)
    return assigned


def weights_of(partitions: Collection[TopicPartition], loads: Loads) -> dict[TopicPartition, int]:
    """Return the weight of each partition: its load plus a base cost, since an idle partition has a cost too.

    Weights are integers, so that sums do not depend on the order of addition.
    """
    if not loads:
        return dict.fromkeys(partitions, 1)
    measured = {partition: round(loads[partition]) for partition in partitions if partition in loads}
    mean = sum(measured.values()) // len(measured) if measured else 0
    presence = max(1, mean // 10)
    return {partition: measured.get(partition, mean) + presence for partition in partitions}


def _half_an_ordinary_one(weights: Mapping[TopicPartition, int]) -> int:
    """Return the minimum gain of a move. The median is used, since a few hot partitions do not represent the others."""
    ordered = sorted(weights.values())
    return max(1, ordered[len(ordered) // 2] // 2) if ordered else 1


def _house(
    assigned: dict[TopicPartition, int],
    unassigned: Iterable[TopicPartition],
    weights: Mapping[TopicPartition, int],
    slots: int,
) -> None:
    """Assign each partition to the slot that has the least load at that point.

    ``unassigned`` is in order; partitions of equal weight keep it.
    """
    sums = [0] * slots
    for partition, slot in assigned.items():
        sums[slot] += weights[partition]
    lightest = [(load, slot) for slot, load in enumerate(sums)]
    heapq.heapify(lightest)
    for partition in sorted(unassigned, key=weights.__getitem__, reverse=True):
        load, slot = lightest[0]
        assigned[partition] = slot
        heapq.heapreplace(lightest, (load + weights[partition], slot))
