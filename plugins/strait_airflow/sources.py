"""The topics of source clusters as all watches of a triggerer share them: one request for each cluster and look."""

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
"""A look takes at most one part in so many of the time: large clusters are looked at less often."""

_LONGEST_PAUSE_SECONDS = 30.0


class Topics(NamedTuple):
    """A cluster at the last look. The same object as long as nothing has changed."""

    partitions: Mapping[str, int]
    """Topic -> number of its partitions."""

    away: "StraitError | None" = None
    """Why the cluster could not be asked."""


class SourceTopics:
    """One cluster, looked at by a thread of its own, so that one that does not answer holds up nobody."""

    def __init__(self, properties: Mapping[str, str], cluster: str) -> None:
        self._properties = dict(properties)
        self._cluster = cluster
        self._ended = threading.Event()
        self.latest: Topics | None = None
        """None until the first look has ended."""
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
    """The one that looks at this cluster with these properties, to be left with `leave`."""
    key = (cluster, frozenset(properties.items()))
    with _lock:
        source, users = _shared.get(key) or (SourceTopics(properties, cluster), 0)
        _shared[key] = source, users + 1
        return source


def leave(source: SourceTopics) -> None:
    """The last to leave ends it."""
    with _lock:
        key, users = next((key, users) for key, (one, users) in _shared.items() if one is source)
        if users > 1:
            _shared[key] = source, users - 1
        else:
            del _shared[key]
            source.end()
