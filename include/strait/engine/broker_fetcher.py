"""Fetching from one source broker over two lines: one for what is busy, one for what is quiet.

A broker looks at every partition of a session each time that it answers: with 10,000 of them that takes tens of
milliseconds, whatever has changed. So partitions of which nothing comes wait in a session of their own, over a
connection of their own, and those that are written to are in one that is as small as their number. Whatever changes on
a quiet partition, a record or anything else, makes it busy.
"""

from collections.abc import Callable

from strait.engine.fetcher import QUIET_LINE, Fetcher
from strait.engine.partition.partition import Partition

QUIET_AT_LEAST = 200
"""So many quiet partitions are worth a session of their own."""
MOVED_AT_ONCE = 1000


class BrokerFetcher:
    """``make`` makes the fetcher of a line."""

    def __init__(self, make: Callable[[int], Fetcher]) -> None:
        self._make = make
        self._busy = make(0)
        self._quiet: Fetcher | None = None
        self._is_quiet: set[Partition] = set()
        self._fetchers = 1
        self._resting: dict[Partition, None] = {}  # found quiet, and not moved yet
        self._waking: dict[Partition, None] = {}  # not quiet any more, and not moved yet

    def fit(self, fetchers: int) -> None:
        """Size the replies; ``fetchers``: how many brokers are fetched from, 0 if this one is not."""
        self._fetchers = fetchers
        self._busy.fit(fetchers)
        if self._quiet is not None:
            self._quiet.fit(fetchers)

    def add(self, partition: Partition) -> None:
        """From now on the partition is fetched here."""
        self._busy.add(partition)

    def remove(self, partition: Partition) -> None:
        """The partition is not fetched here any more, if it was."""
        if partition in self._is_quiet:
            self._take_back(partition)
        self._busy.remove(partition)

    @property
    def used(self) -> bool:
        """It has partitions."""
        return self._busy.used or bool(self._is_quiet)

    @property
    def held_bytes(self) -> int:
        """Of the slot's memory: who holds the least asks first."""
        return self._busy.held_bytes

    def ask(self) -> None:
        """Ask for more on both lines."""
        self._wake()
        self._busy.ask()
        self._rest()
        if self._quiet is not None:
            self._quiet.ask()

    def _wake(self) -> None:
        """Move what has changed back, when the busy line can take it: until then the quiet one goes on with it."""
        if self._quiet is None:
            return
        self._waking.update(dict.fromkeys(self._quiet.changed()))
        if not self._waking or not self._busy.asks_next:
            return
        waking, self._waking = self._waking, {}
        for partition in waking:
            if partition in self._is_quiet:
                self._take_back(partition)
                self._busy.add(partition)

    def _rest(self) -> None:
        """Move what has become quiet, if that is worth it, when the quiet line can take it."""
        self._resting.update(dict.fromkeys(self._busy.quiet(MOVED_AT_ONCE)))
        if not self._resting or (self._quiet is None and len(self._resting) < QUIET_AT_LEAST):
            return
        if self._quiet is None:
            self._quiet = self._make(QUIET_LINE)
            self._quiet.fit(self._fetchers)
        if not self._quiet.asks_next:
            return
        resting, self._resting = self._resting, {}
        for partition in resting:
            if self._busy.is_quiet(partition):
                self._busy.remove(partition)
                self._quiet.add(partition)
                self._is_quiet.add(partition)

    def _take_back(self, partition: Partition) -> None:
        if self._quiet is not None:
            self._quiet.remove(partition)
        self._is_quiet.discard(partition)
