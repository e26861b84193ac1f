"""A link's failovers and rehearsals, read in the background as they are recorded."""

import time
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strait.control.failover.journal import Journal
from strait.exporter.background import BackgroundWatch
from strait.state.failover_records import Failover
from strait.state.link_handle import ConfiguredLink

LOOK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class FailoversSeen:
    """All failovers and rehearsals, oldest first.

    Attributes:
        error: why they cannot be read; "" if they can. All else is then as it was last.
        at: time of the observation, in seconds of the monotonic clock.
    """

    records: tuple[Failover, ...] = ()
    error: str = ""
    at: float = field(default_factory=time.monotonic)
    every_seconds: ClassVar[float] = LOOK_SECONDS


class FailoversWatch(BackgroundWatch[FailoversSeen]):
    """Follows the failovers of one link."""

    def _follow(self, link: ConfiguredLink) -> None:
        journal = Journal(link)
        while not self._stopped.is_set():
            self.newest = FailoversSeen(tuple(journal.all()))
            self._stopped.wait(LOOK_SECONDS)

    def _failed(self, link: ConfiguredLink | None, error: str) -> FailoversSeen:
        return replace(self.newest or FailoversSeen(), error=error)
