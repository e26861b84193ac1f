"""Observations of links for the page: one watch per link, shared by all browsers, which stops when no client asks."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from strait.errors import ConfigError, StraitError
from strait.exporter.watch import LinkFollower
from strait.planning.history.sample import Sample
from strait.planning.status.rows import SILENT_MS
from strait.waiting import unix_ms
from strait_airflow.page.views.links import LOOK_SECONDS
from strait_airflow.page.watches.history import HistoryWatch
from strait_airflow.page.watches.polled import (
    APPLICATIONS,
    FAILOVERS,
    GROUPS,
    HOURS,
    QUARANTINE,
    RUNS,
    Found,
    Part,
    PolledWatch,
)
from strait_airflow.page.watches.polled import Seen as Polled

if TYPE_CHECKING:
    from strait.config.links import LinksFile
    from strait.planning.history.overrun import Reports

Seen = TypeVar("Seen", covariant=True)

IDLE_SECONDS = 120.0
_SWEEP_SECONDS = 10.0


class Watch(Protocol[Seen]):
    """Follows a link in the background."""

    @property
    def newest(self) -> Seen | None: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Observers(Generic[Seen]):
    """Starts to follow a link on its first request. Thread-safe.

    Args:
        make: returns a watch that is not started yet.
        idle_seconds: a watch stops after this time without a request.
    """

    def __init__(self, make: Callable[[str], Watch[Seen]], idle_seconds: float = IDLE_SECONDS) -> None:
        self._make = make
        self._idle_seconds = idle_seconds
        self._lock = threading.Lock()
        self._watches: dict[str, Watch[Seen]] = {}
        self._asked_at: dict[str, float] = {}

    def newest(self, link: str) -> Seen | None:
        """Return the latest observation without waiting; None until the first one is complete."""
        with self._lock:
            self._asked_at[link] = time.monotonic()
            watch = self._watches.get(link)
            if watch is None:
                if not self._watches:
                    threading.Thread(target=self._sweep, name="idle observers", daemon=True).start()
                watch = self._watches[link] = self._make(link)
                watch.start()
            return watch.newest

    def end_idle(self, now: float) -> bool:
        """Stop the watches without a request in the last ``idle_seconds``; return whether any is left."""
        with self._lock:
            for link in [one for one in self._watches if now - self._asked_at[one] > self._idle_seconds]:
                self._watches.pop(link).stop()
            return bool(self._watches)

    def _sweep(self) -> None:
        while self.end_idle(time.monotonic()):
            time.sleep(_SWEEP_SECONDS)


def _load(link: str) -> "LinksFile":
    from strait_airflow.settings import clusters_of

    try:
        return clusters_of(link)
    except StraitError:
        raise
    except Exception as error:  # Airflow and its database raise many types; the watch must report them and continue
        problem = f"asking Airflow for its Connections: {type(error).__name__}"
        raise ConfigError(f"link {link}", [problem], hint="see the log of Airflow's API server") from error


def _polled(part: Part[Found]) -> Observers[Polled[Found]]:
    return Observers(lambda link: PolledWatch(part, partial(_load, link), link))


observers = Observers(lambda link: LinkFollower(partial(_load, link), link, LOOK_SECONDS))
applications_observers = _polled(APPLICATIONS)
failovers_observers = _polled(FAILOVERS)
groups_observers = _polled(GROUPS)
hours_observers = _polled(HOURS)
quarantine_observers = _polled(QUARANTINE)
runs_observers = _polled(RUNS)

_pasts: dict[str, dict[int, Sample]] = defaultdict(dict)


def _reports_now(link: str) -> "Reports | None":
    """Return the latest reports, except of slots that no longer report; None while the link cannot be observed."""
    seen, since_ms = observers.newest(link), unix_ms() - SILENT_MS
    if seen is None or seen.error:
        return None
    return {slot: parts for slot, parts in seen.reports.items() if parts and parts[0].at_ms >= since_ms}


history_observers = Observers(
    lambda link: HistoryWatch(partial(_load, link), link, partial(_reports_now, link), _pasts[link])
)
