"""A link's failovers and rehearsals, read in the background as they are recorded."""

from dataclasses import dataclass

from strait.config.links import LinksFile
from strait.control.failover.journal import Journal
from strait.exporter.background import BackgroundWatch
from strait.state.failover_records import Failover

LOOK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class FailoversSeen:
    """All failovers and rehearsals, oldest first.

    Attributes:
        error: why they cannot be read; "" if they can.
    """

    records: tuple[Failover, ...] = ()
    error: str = ""


class FailoversWatch(BackgroundWatch[FailoversSeen]):
    """Follows the failovers of one link."""

    def _follow(self, file: LinksFile) -> None:
        destination = file.links[self._link].destination
        journal = Journal(file.clusters[destination], destination, self._link)
        while not self._stopped.is_set():
            self.newest = FailoversSeen(tuple(journal.all()))
            self._stopped.wait(LOOK_SECONDS)

    def _failed(self, file: LinksFile | None, error: str) -> FailoversSeen:
        return FailoversSeen(error=error)
