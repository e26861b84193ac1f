"""The last day of a link, from its reports: read backwards in steps, then followed minute by minute."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from strait.config.links import LinksFile
from strait.control.report_history import reports_at
from strait.exporter.background import BackgroundWatch
from strait.planning.history.overrun import Reports
from strait.planning.history.sample import Sample, sample_of

DAY_MS = 24 * 60 * 60_000
HOUR_MS = 60 * 60_000
STEP_MS = 10 * 60_000
MINUTE_MS = 60_000
_LATE_MS = 10_000
"""So long after a moment everything of it has been written."""
_AT_ONCE = 2
"""Links whose past is read: each costs a second or two of CPU."""

_reading_past = threading.BoundedSemaphore(_AT_ONCE)


@dataclass(frozen=True, slots=True)
class HistorySeen:
    """The past of a link.

    Attributes:
        samples: the oldest first: one a minute of the last hour, as far as it was followed, and one in ten before.
        whole: it reaches back as far as it will.
        error: why it cannot be read; "" where it can.
    """

    samples: tuple[Sample, ...] = ()
    whole: bool = False
    error: str = ""


class HistoryWatch(BackgroundWatch[HistorySeen]):
    """Of one link. Only its past is read from the cluster, and over a connection that is closed then.

    Args:
        now: gives the newest reports, of slots that report; None: not known.
        found: what earlier watches of the link have seen, by its time (ms since 1970); added to.
    """

    def __init__(
        self, load: Callable[[], LinksFile], link: str, now: Callable[[], Reports | None], found: dict[int, Sample]
    ) -> None:
        super().__init__(load, link)
        self._now = now
        self._found = found

    def _follow(self, file: LinksFile) -> None:
        destination = file.links[self._link].destination
        began_ms = _now_ms() - _LATE_MS
        with _reading_past:
            past = reports_at(file.clusters[destination], destination, self._link, self._unseen(began_ms))
            for at_ms, reports in past:
                self._take(at_ms, reports, whole=False)
        self.newest = HistorySeen(_kept(self._found, began_ms), whole=True)
        while not self._stopped.wait(_until_next_minute()):
            if (newest := self._now()) is not None:
                self._take(_now_ms() // MINUTE_MS * MINUTE_MS, newest, whole=True)

    def _failed(self, file: LinksFile | None, error: str) -> HistorySeen:
        return HistorySeen(_kept(self._found, _now_ms()), whole=True, error=error)

    def _take(self, at_ms: int, reports: Reports, *, whole: bool) -> None:
        self._found[at_ms] = sample_of(at_ms, reports)
        self.newest = HistorySeen(_kept(self._found, _now_ms()), whole=whole)

    def _unseen(self, now_ms: int) -> Iterator[int]:
        """Backwards: the last hours are looked at first."""
        for at_ms in range(now_ms // STEP_MS * STEP_MS, now_ms - DAY_MS, -STEP_MS):
            if self._stopped.is_set():
                return
            if at_ms not in self._found:
                yield at_ms


def _kept(found: dict[int, Sample], now_ms: int) -> tuple[Sample, ...]:
    """Forgets what is too old, and what is too close to others for its age."""
    for at_ms in list(found):
        if at_ms < now_ms - DAY_MS or (at_ms < now_ms - HOUR_MS and at_ms % STEP_MS):
            del found[at_ms]
    return tuple(found[at_ms] for at_ms in sorted(found))


def _until_next_minute() -> float:
    return (MINUTE_MS - _now_ms() % MINUTE_MS) / 1000


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
