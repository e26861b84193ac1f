"""Balances the load of slots by moving partitions between them. Pure; equal inputs give equal moves."""

import heapq
from bisect import bisect_right, insort
from collections.abc import Mapping

from strait.model import TopicPartition

Weighed = tuple[int, TopicPartition]


class Balance:
    """The load of each slot while partitions are moved. Moves are written into ``assigned``.

    Partitions without a weight are not moved and add no load.
    """

    def __init__(self, assigned: dict[TopicPartition, int], weights: Mapping[TopicPartition, int], slots: int) -> None:
        self._assigned = assigned
        self._held: list[list[Weighed]] = [[] for _ in range(slots)]
        self._sorted = [False] * slots
        for partition, slot in assigned.items():
            if partition in weights:
                self._held[slot].append((weights[partition], partition))
        self._load = [sum(weight for weight, _ in held) for held in self._held]
        self._lightest = [(load, slot) for slot, load in enumerate(self._load)]
        self._heaviest = [(-load, slot) for slot, load in enumerate(self._load)]
        heapq.heapify(self._lightest)
        heapq.heapify(self._heaviest)

    def level(self, min_gain: int) -> None:
        """Move partitions from the heaviest to the lightest slot while each move lowers the heavier by ``min_gain``."""
        while (slot := self._most()) is not None:
            if not self._give(slot, None, min_gain):
                self._set_aside(slot)  # its partitions are too heavy to move; the next slot may have lighter ones

    def relieve(self, too_much: float, enough: float, worth: int) -> None:
        """Bring each slot with more than ``too_much`` times the mean load down to ``enough`` times the mean.

        Only as far as its partitions allow: a slot that holds a single hot partition is unchanged. A slot that exceeds
        the mean by less than ``worth`` is left alone. A second call would move nothing.
        """
        mean = sum(self._load) / len(self._load)
        min_gain = max(1, round(mean * (enough - 1) / 2))
        while (slot := self._most()) is not None:
            if self._load[slot] <= too_much * mean or self._load[slot] - mean < worth:
                return
            while self._load[slot] > enough * mean and self._give(slot, enough * mean, min_gain):
                pass
            self._set_aside(slot)  # it receives partitions only if it is the lightest slot, so it stays relieved

    def _give(self, slot: int, limit: float | None, min_gain: int) -> bool:
        """Move the partition that best evens out this slot and the lightest one.

        A partition with which the lightest slot stays within ``limit`` is preferred.

        Returns:
            False if no partition lowers the heavier of the two by ``min_gain``.
        """
        to = self._least()
        held = self._sorted_of(slot)
        gap = self._load[slot] - self._load[to]
        ideal = gap // 2
        if limit is not None:
            ideal = min(ideal, max(0, int(limit) - self._load[to]))
        above = bisect_right(held, ideal, key=lambda weighed: weighed[0])
        for at in (above - 1, above):
            if 0 <= at < len(held) and min(held[at][0], gap - held[at][0]) >= min_gain:
                weight, partition = held.pop(at)
                self._change(slot, -weight)
                self._put(partition, weight, to)
                return True
        return False

    def _put(self, partition: TopicPartition, weight: int, slot: int) -> None:
        self._assigned[partition] = slot
        if self._sorted[slot]:
            insort(self._held[slot], (weight, partition))
        else:
            self._held[slot].append((weight, partition))
        self._change(slot, weight)

    def _change(self, slot: int, by: int) -> None:
        self._load[slot] += by
        heapq.heappush(self._lightest, (self._load[slot], slot))
        heapq.heappush(self._heaviest, (-self._load[slot], slot))

    def _sorted_of(self, slot: int) -> list[Weighed]:
        if not self._sorted[slot]:
            self._held[slot].sort()
            self._sorted[slot] = True
        return self._held[slot]

    def _least(self) -> int:
        while self._lightest[0][0] != self._load[self._lightest[0][1]]:
            heapq.heappop(self._lightest)  # outdated by a later change
        return self._lightest[0][1]

    def _most(self) -> int | None:
        while self._heaviest and -self._heaviest[0][0] != self._load[self._heaviest[0][1]]:
            heapq.heappop(self._heaviest)
        return self._heaviest[0][1] if self._heaviest else None

    def _set_aside(self, slot: int) -> None:
        self._heaviest = [entry for entry in self._heaviest if entry[1] != slot]
        heapq.heapify(self._heaviest)
