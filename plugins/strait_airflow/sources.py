"""The topics of source clusters, shared by all watches of a triggerer: one request per cluster and poll."""

import logging
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from strait.errors import StraitError
    from strait.kafka.admin import Admin

log = logging.getLogger(__name__)

LOOK_EVERY_SECONDS = 2.0
_SHARE = 50
"""The pause after a poll is at least this many times its duration, up to `_LONGEST_PAUSE_SECONDS`: large clusters are
polled less often."""

_LONGEST_PAUSE_SECONDS = 30.0


class Topics(NamedTuple):
    """A cluster's topics in the last poll. The same object as long as nothing changes."""

    partitions: Mapping[str, int]
    """Topic -> number of partitions."""

    away: "StraitError | None" = None
    """Why the cluster could not be queried."""


class SourceTopics:
    """Polls one cluster in a separate thread, so that a cluster that does not respond delays no other."""

    def __init__(self, properties: Mapping[str, str], cluster: str) -> None:
        self._properties = dict(properties)
        self._cluster = cluster
        self._ended = threading.Event()
        self.latest: Topics | None = None
        """None until the first poll is complete."""
        threading.Thread(target=self._follow, name=f"strait-topics-{cluster}", daemon=True).start()

    def end(self) -> None:
        self._ended.set()

    def _follow(self) -> None:
        from strait.errors import StraitError
        from strait.kafka.admin import Admin

        admin: Admin | None = None
        while not self._ended.is_set():
            pause = LOOK_EVERY_SECONDS
            try:
                admin = admin or Admin(self._properties, self._cluster)
                began = time.monotonic()
                self._saw(admin)
                pause = max(pause, min(_SHARE * (time.monotonic() - began), _LONGEST_PAUSE_SECONDS))
            except StraitError as error:
                admin = None
                self._failed(error)
            except Exception as error:  # all links of the cluster depend on this thread
                log.exception("cluster %s: looking at its topics", self._cluster)
                admin = None
                self._failed(StraitError(f"cluster {self._cluster}: looking at its topics: {error}"))
            self._ended.wait(pause)

    def _failed(self, error: "StraitError") -> None:
        if self.latest is None or str(self.latest.away) != str(error):
            self.latest = Topics({}, error)

    def _saw(self, admin: "Admin") -> None:
        found = admin.partition_counts()
        if self.latest is None or self.latest.away is not None or self.latest.partitions != found:
            self.latest = Topics(found)


_lock = threading.Lock()
_shared: dict[tuple[str, frozenset[tuple[str, str]]], tuple[SourceTopics, int]] = {}


def join(properties: Mapping[str, str], cluster: str) -> SourceTopics:
    """Return the shared poller of this cluster with these properties. Release it with `leave`."""
    key = (cluster, frozenset(properties.items()))
    with _lock:
        source, users = _shared.get(key) or (SourceTopics(properties, cluster), 0)
        _shared[key] = source, users + 1
        return source


def leave(source: SourceTopics) -> None:
    """Release a poller; it stops once all users have released it."""
    with _lock:
        key, users = next((key, users) for key, (one, users) in _shared.items() if one is source)
        if users > 1:
            _shared[key] = source, users - 1
        else:
            del _shared[key]
            source.end()
