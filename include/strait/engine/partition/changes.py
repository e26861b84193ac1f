"""Tracks which partitions of a slot have something to report, so that a report costs as much as has changed, not as
much as exists."""

from collections import deque
from itertools import islice
from typing import Generic, Protocol, TypeVar


class Changing(Protocol):
    """The attributes that a tracked partition must have."""

    topic: str
    number: int
    retired: bool


One = TypeVar("One", bound=Changing)


class Changes(Generic[One]):
    """Partitions add themselves as they change; each is listed once, in the order of its first change.

    A change of state or reason is *urgent*: it is reported before all changed figures. All partitions are repeated in
    rotation, for readers that start later and for reports that were lost.
    """

    def __init__(self) -> None:
        self._moved: dict[One, None] = {}
        self._urgent: dict[One, None] = {}
        self._left: list[tuple[str, int]] = []
        self._in_turn: deque[One] = deque()

    def begin(self, partition: One) -> None:
        """Add a partition that the slot copies from now on."""
        self._in_turn.append(partition)
        self._moved[partition] = None

    def moved(self, partition: One) -> None:
        """Note that the partition's figures have changed."""
        self._moved[partition] = None

    def turned(self, partition: One) -> None:
        """Note that the partition's state or reason may have changed."""
        self._urgent[partition] = None

    def leave(self, partition: One) -> None:
        """Remove a partition that the slot no longer copies."""
        self._moved.pop(partition, None)
        self._urgent.pop(partition, None)
        self._left.append((partition.topic, partition.number))

    def __len__(self) -> int:
        """Return the number of partitions."""
        return len(self._in_turn)

    @property
    def waits(self) -> bool:
        """Whether anything is to be reported."""
        return bool(self._urgent or self._moved or self._left)

    @property
    def urgent(self) -> bool:
        """Whether a change of state or reason is to be reported."""
        return bool(self._urgent)

    def take(self, most: int) -> list[One]:
        """Return the partitions that have changed, at most ``most``; the others are returned by the next call."""
        taken = list(islice(self._urgent, most))
        for partition in taken:
            del self._urgent[partition]
            self._moved.pop(partition, None)
        moved = list(islice(self._moved, most - len(taken)))
        for partition in moved:
            del self._moved[partition]
        return [partition for partition in taken + moved if not partition.retired]

    def take_left(self) -> tuple[tuple[str, int], ...]:
        """Return topic and number of the removed partitions."""
        left, self._left = tuple(self._left), []
        return left

    def repeat(self, most: int) -> list[One]:
        """Return the next partitions in rotation, at most ``most``."""
        repeated: list[One] = []
        for _ in range(min(most, len(self._in_turn))):
            partition = self._in_turn.popleft()
            if partition.retired:
                continue
            self._in_turn.append(partition)
            if partition not in self._moved and partition not in self._urgent:  # those are reported anyway
                repeated.append(partition)
        return repeated
