"""Parts of a link that the page reads again and again in the background: its applications, failovers, consumer groups,
quarantine, offset map and last 30 days."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from strait.config.consumer_groups import GroupFilter
from strait.config.links import LinksFile
from strait.config.naming import application_of
from strait.consumer_groups.sync import GroupSync
from strait.control.failover.journal import Journal
from strait.control.quarantine import Quarantine
from strait.control.report_history import history_points
from strait.exporter.background import BackgroundWatch
from strait.launch.overview import overview
from strait.planning.consumer_groups import GroupStatus
from strait.planning.history.sample import Sample, samples_of
from strait.state.failover_records import Failover
from strait.state.link_handle import ConfiguredLink
from strait.state.quarantine_log import Entry
from strait.state.schema import OffsetMapping
from strait.waiting import unix_ms
from strait_airflow.applications import launcher
from strait_airflow.page.watches.history import DAY_MS, HOUR_MS

DAYS_KEPT = 30
_LOG_BYTES = 8 * 1024
_LOG_LINES = 30

Found = TypeVar("Found")
Runs = Mapping[tuple[str, int], tuple[OffsetMapping, ...]]


@dataclass(frozen=True, slots=True)
class Seen(Generic[Found]):
    """A part of a link, as it was when it was last read.

    Attributes:
        error: why it cannot be read now; "" if it was. All else is then as it was last.
        every_seconds: time between two reads.
        at: time of the read, in seconds of the monotonic clock; ``at_ms``: in ms since 1970.
    """

    found: Found
    error: str = ""
    every_seconds: float = 0.0
    at: float = field(default_factory=time.monotonic)
    at_ms: int = field(default_factory=unix_ms)


@dataclass(frozen=True, slots=True)
class Part(Generic[Found]):
    """A part of a link, and how it is read.

    Attributes:
        connect: opens the connections that the reads of a link share, and yields the function that reads; that raises
            StraitError.
        nothing: its value if the first read fails.
        every_seconds: time between two reads.
    """

    connect: Callable[[ConfiguredLink], AbstractContextManager[Callable[[], Found]]]
    nothing: Found
    every_seconds: float


class PolledWatch(BackgroundWatch[Seen[Found]]):
    """Reads a part of one link until it is stopped; connects again if the link's settings change."""

    def __init__(self, part: Part[Found], load: Callable[[], LinksFile], link: str) -> None:
        super().__init__(load, link)
        self._part = part

    def _follow(self, link: ConfiguredLink) -> None:
        with self._part.connect(link) as read:
            while not self._stopped.is_set() and self._load() == link.file:
                self.newest = Seen(read(), every_seconds=self._part.every_seconds)
                self._stopped.wait(self._part.every_seconds)

    def _failed(self, link: ConfiguredLink | None, error: str) -> Seen[Found]:
        return replace(self.newest or Seen(self._part.nothing, every_seconds=self._part.every_seconds), error=error)


@contextmanager
def _applications(link: ConfiguredLink) -> Iterator[Callable[[], tuple[dict[str, Any], ...]]]:
    yield lambda: tuple(_each_application(link))


def _each_application(link: ConfiguredLink) -> Iterator[dict[str, Any]]:
    settings, now_ms = link.settings, unix_ms()
    launch = launcher(settings.spark)
    for group in sorted(settings.groups) if settings.pool is None else ("",):
        for standby in (False, True):
            name = application_of(link.name, settings.pool, group, standby=standby)
            for found in overview(launch, (name,), now_ms):
                newest = launch.state(name)
                text = "" if newest is None else launch.log_tail(newest, _LOG_BYTES)
                spec = None if newest is None or settings.pool is None else launch.spec(newest)
                yield found | {
                    "group": group,
                    "pool": settings.pool or "",
                    "links": [] if spec is None else list(spec.links),
                    "standby": standby,
                    "log_lines": text.splitlines()[-_LOG_LINES:],
                }


@contextmanager
def _failovers(link: ConfiguredLink) -> Iterator[Callable[[], tuple[Failover, ...]]]:
    journal = Journal(link)
    yield lambda: tuple(journal.all())


@contextmanager
def _groups(link: ConfiguredLink) -> Iterator[Callable[[], tuple[GroupStatus, ...]]]:
    settings = link.settings.consumer_groups
    selected = GroupFilter(settings.include, settings.exclude)
    with GroupSync(link, selected=selected, include_moved=settings.include_moved) as groups:
        yield lambda: tuple(groups.status(unselected=True))


@contextmanager
def _quarantine(link: ConfiguredLink) -> Iterator[Callable[[], tuple[Entry, ...]]]:
    quarantine = Quarantine(link, keeps_settled=False)
    yield lambda: tuple(entry for entry in quarantine.contents().entries() if not entry.settled)


@contextmanager
def _runs(link: ConfiguredLink) -> Iterator[Callable[[], Runs]]:
    with link.state("map") as state:

        def read() -> Runs:
            state.catch_up()
            return dict(state.runs)

        yield read


@contextmanager
def _hours(link: ConfiguredLink) -> Iterator[Callable[[], tuple[Sample, ...]]]:
    def read() -> tuple[Sample, ...]:
        now_ms = unix_ms()
        since_ms = now_ms - DAYS_KEPT * DAY_MS
        points = history_points(*link.destination, link.name, "hour", since_ms)
        return tuple(samples_of(points, HOUR_MS, since_ms, now_ms))

    yield read


APPLICATIONS: Part[tuple[dict[str, Any], ...]] = Part(_applications, (), 10.0)
"""Those that this host can see, each with its submissions (see `strait.launch.overview`), `group` ("": that of
its pool), `pool` ("": none) with the `links` that run in it, `standby` and `log_lines`, the last ones of the newest submission."""
FAILOVERS: Part[tuple[Failover, ...]] = Part(_failovers, (), 5.0)
"""Failovers and rehearsals, oldest first."""
GROUPS: Part[tuple[GroupStatus, ...]] = Part(_groups, (), 15.0)
"""Consumer groups that have offsets in the link's topics, whether or not the link selects them."""
QUARANTINE: Part[tuple[Entry, ...]] = Part(_quarantine, (), 30.0)
"""Unresolved records, in the order in which they were quarantined."""
RUNS: Part[Runs] = Part(_runs, {}, 10.0)
"""(source topic, partition) -> its offset segments, by sequence_base."""
HOURS: Part[tuple[Sample, ...]] = Part(_hours, (), 300.0)
"""The last `DAYS_KEPT` days, a sample per hour, oldest first."""
