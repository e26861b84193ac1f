"""Which partitions of a slot have something to report, so that a report costs what has changed and not what there is."""

from collections import deque
from itertools import islice
from typing import Generic, Protocol, TypeVar


class Changing(Protocol):
    """What a partition must tell to be in."""

    topic: str
    number: int
    retired: bool


One = TypeVar("One", bound=Changing)


class Changes(Generic[One]):
    """Partitions put themselves in as they change; each is in once, in the order of its first change.

    A change of state or reason is *urgent*: it is reported before all movements. All partitions are repeated in turn,
    for readers that begin later and for reports that were lost.
    """

    def __init__(self) -> None:
        self._moved: dict[One, None] = {}
        self._urgent: dict[One, None] = {}
        self._left: list[tuple[str, int]] = []
        self._in_turn: deque[One] = deque()

    def begin(self, partition: One) -> None:
        """The slot copies it from now on."""
        self._in_turn.append(partition)
        self._moved[partition] = None

    def moved(self, partition: One) -> None:
        """Its figures are others."""
        self._moved[partition] = None

    def turned(self, partition: One) -> None:
        """Its state or reason may be another."""
        self._urgent[partition] = None

    def leave(self, partition: One) -> None:
        """The slot copies it no more."""
        self._moved.pop(partition, None)
        self._urgent.pop(partition, None)
        self._left.append((partition.topic, partition.number))

    def __len__(self) -> int:
        """How many partitions there are."""
        return len(self._in_turn)

    @property
    def waits(self) -> bool:
        """Something is to be reported."""
        return bool(self._urgent or self._moved or self._left)

    @property
    def urgent(self) -> bool:
        """Something waits that should not."""
        return bool(self._urgent)

    def take(self, most: int) -> list[One]:
        """What has changed, at most so many; the rest is there the next time."""
        taken = list(islice(self._urgent, most))
        for partition in taken:
            del self._urgent[partition]
            self._moved.pop(partition, None)
        moved = list(islice(self._moved, most - len(taken)))
        for partition in moved:
            del self._moved[partition]
        return [partition for partition in taken + moved if not partition.retired]

    def take_left(self) -> tuple[tuple[str, int], ...]:
        """Topic and number of those that left."""
        left, self._left = tuple(self._left), []
        return left

    def repeat(self, most: int) -> list[One]:
        """The next ones in turn."""
        repeated: list[One] = []
        for _ in range(min(most, len(self._in_turn))):
            partition = self._in_turn.popleft()
            if partition.retired:
                continue
            self._in_turn.append(partition)
            if partition not in self._moved and partition not in self._urgent:  # those are reported anyway
                repeated.append(partition)
        return repeated
