"""Metrics of a link over the last 24 h: read from the history that its slots roll up, then extended every minute."""

from collections.abc import Callable
from dataclasses import dataclass

from strait.config.links import LinksFile
from strait.control.report_history import history_points
from strait.exporter.background import BackgroundWatch
from strait.planning.history.overrun import Reports
from strait.planning.history.sample import Sample, sample_of, samples_of
from strait.state.link_handle import ConfiguredLink
from strait.waiting import unix_ms

DAY_MS = 24 * 60 * 60_000
HOUR_MS = 60 * 60_000
STEP_MS = 10 * 60_000
MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class HistorySeen:
    """The metrics of a link over the last 24 h.

    Attributes:
        samples: oldest first: one per minute for the last hour, as far as it was observed, and one per 10 min before.
        whole: True once the past was read, or could not be read.
        error: why it cannot be read; "" if it can.
    """

    samples: tuple[Sample, ...] = ()
    whole: bool = False
    error: str = ""


class HistoryWatch(BackgroundWatch[HistorySeen]):
    """Follows one link. Only its past is read from the cluster, over a connection that is closed afterwards.

    Args:
        now: returns the latest reports of slots that report; None: unknown.
        found: samples of the link's earlier watches by their time (ms since 1970); new samples are added to it.
    """

    def __init__(
        self, load: Callable[[], LinksFile], link: str, now: Callable[[], Reports | None], found: dict[int, Sample]
    ) -> None:
        super().__init__(load, link)
        self._now = now
        self._found = found

    def _follow(self, link: ConfiguredLink) -> None:
        now_ms = unix_ms()
        points = list(history_points(*link.destination, link.name, "minute", now_ms - DAY_MS))
        hour_ms = (now_ms - HOUR_MS) // STEP_MS * STEP_MS
        past = samples_of(points, STEP_MS, now_ms - DAY_MS, hour_ms) + samples_of(points, MINUTE_MS, hour_ms, now_ms)
        self._found |= {sample.at_ms: sample for sample in past if sample.at_ms not in self._found}
        self.newest = HistorySeen(_kept(self._found, now_ms), whole=True)
        while not self._stopped.wait(_until_next_minute()):
            if (newest := self._now()) is not None:
                at_ms = unix_ms() // MINUTE_MS * MINUTE_MS
                self._found[at_ms] = sample_of(at_ms, newest)
                self.newest = HistorySeen(_kept(self._found, unix_ms()), whole=True)

    def _failed(self, link: ConfiguredLink | None, error: str) -> HistorySeen:
        return HistorySeen(_kept(self._found, unix_ms()), whole=True, error=error)


def _kept(found: dict[int, Sample], now_ms: int) -> tuple[Sample, ...]:
    """Delete samples older than a day, and those older than an hour between 10 min steps; return the rest, sorted."""
    for at_ms in list(found):
        if at_ms < now_ms - DAY_MS or (at_ms < now_ms - HOUR_MS and at_ms % STEP_MS):
            del found[at_ms]
    return tuple(found[at_ms] for at_ms in sorted(found))


def _until_next_minute() -> float:
    return (MINUTE_MS - unix_ms() % MINUTE_MS) / 1000
