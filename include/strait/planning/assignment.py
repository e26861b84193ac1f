"""Which slot copies which partition. Pure and deterministic.

Moving a partition between slots is always safe, but costs it a moment; so nothing moves without a reason.
"""

import heapq
from collections.abc import Iterable, Mapping

from strait.model import TopicPartition


def assign(
    partitions: Iterable[TopicPartition], previous: Mapping[TopicPartition, int], slots: int, previous_slots: int
) -> dict[TopicPartition, int]:
    """Give each partition a slot from 0 to ``slots`` - 1.

    A partition stays where it is. One that is new, or whose slot is gone, goes to the slot with the fewest. Only where
    slots were added do others move, and no more than evens the slots out.

    Args:
        previous: where partitions are now; may name partitions that are no longer wanted.
        previous_slots: how many slots there were; 0 where there was no plan.
    """
    wanted = sorted(set(partitions))
    held: list[list[TopicPartition]] = [[] for _ in range(slots)]
    homeless = []
    for partition in wanted:
        slot = previous.get(partition)
        if slot is not None and slot < slots:
            held[slot].append(partition)
        else:
            homeless.append(partition)
    if slots > previous_slots > 0:
        homeless = sorted(homeless + _surplus(held, len(wanted)))
    loads = [(len(of_slot), slot) for slot, of_slot in enumerate(held)]
    heapq.heapify(loads)
    for partition in homeless:
        load, slot = heapq.heappop(loads)
        held[slot].append(partition)
        heapq.heappush(loads, (load + 1, slot))
    return {partition: slot for slot, of_slot in enumerate(held) for partition in of_slot}


def _surplus(held: list[list[TopicPartition]], total: int) -> list[TopicPartition]:
    """Take from each slot what it has beyond an even share, last ones first; the first slots may keep one more."""
    share, extra = divmod(total, len(held))
    taken = []
    for of_slot in sorted(held, key=len, reverse=True):
        keep = share + (extra > 0)
        if len(of_slot) >= keep:
            extra -= keep > share
            taken += of_slot[keep:]
            del of_slot[keep:]
    return taken
