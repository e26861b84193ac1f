"""Fetches from one source broker over two connections: one for busy partitions, one for quiet ones.

A broker checks every partition of a fetch session each time it responds: with 10,000 of them that takes tens of
milliseconds, however few have changed. Therefore partitions without new data wait in a separate session, over a
separate connection, and the session of the busy partitions is as small as their number. Any change of a quiet
partition, a record or anything else, makes it busy.
"""

from collections.abc import Callable

from strait.engine.fetcher import QUIET_LINE, Fetcher
from strait.engine.partition.partition import Partition

QUIET_AT_LEAST = 200
"""This many quiet partitions justify a separate session."""
MOVED_AT_ONCE = 1000
LINES_OF_BROKER = 2
"""Connections of one `BrokerFetcher`."""


class BrokerFetcher:
    """Fetches from one broker. ``make`` creates the fetcher of a connection, by the connection's number."""

    def __init__(self, make: Callable[[int], Fetcher]) -> None:
        self._make = make
        self._busy = make(0)
        self._quiet: Fetcher | None = None
        self._is_quiet: set[Partition] = set()
        self._fetchers = 1
        self._resting: dict[Partition, None] = {}  # quiet, not moved yet
        self._waking: dict[Partition, None] = {}  # no longer quiet, not moved yet

    def fit(self, fetchers: int) -> None:
        """Size the replies. ``fetchers``: number of brokers that are fetched from, 0 if this one is not."""
        self._fetchers = fetchers
        self._busy.fit(fetchers)
        if self._quiet is not None:
            self._quiet.fit(fetchers)

    def add(self, partition: Partition) -> None:
        """Start fetching the partition here."""
        self._busy.add(partition)

    def remove(self, partition: Partition) -> None:
        """Stop fetching the partition here, if it is."""
        if partition in self._is_quiet:
            self._take_back(partition)
        self._resting.pop(partition, None)
        self._waking.pop(partition, None)
        self._busy.remove(partition)

    @property
    def used(self) -> bool:
        """Whether it has partitions."""
        return self._busy.used or bool(self._is_quiet)

    @property
    def held_bytes(self) -> int:
        """Bytes that it holds of its share of the slot's memory; the fetcher that holds the least asks first."""
        return self._busy.held_bytes

    def ask(self) -> None:
        """Request more data on both connections."""
        self._wake()
        self._busy.ask()
        self._rest()
        if self._quiet is not None:
            self._quiet.ask()

    def _wake(self) -> None:
        """Move changed partitions back once the busy connection can take them; until then the quiet one keeps fetching
        them."""
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
        """Move partitions that have become quiet once the quiet connection can take them. The first move waits for
        QUIET_AT_LEAST of them."""
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
