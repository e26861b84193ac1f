"""The quarantined records of a link, read in the background."""

from dataclasses import dataclass

from strait.control.quarantine import Quarantine
from strait.exporter.background import BackgroundWatch
from strait.state.link_handle import ConfiguredLink
from strait.state.quarantine_log import Entry

LOOK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class QuarantineSeen:
    """The quarantine at one moment.

    Attributes:
        entries: unresolved records, in the order in which they were quarantined.
        error: why they cannot be read; "" if they can.
    """

    entries: tuple[Entry, ...] = ()
    error: str = ""


class QuarantineWatch(BackgroundWatch[QuarantineSeen]):
    """Follows the quarantine of one link."""

    def _follow(self, link: ConfiguredLink) -> None:
        quarantine = Quarantine(link, keeps_settled=False)
        while not self._stopped.is_set():
            entries = quarantine.contents().entries()
            self.newest = QuarantineSeen(tuple(entry for entry in entries if not entry.settled))
            self._stopped.wait(LOOK_SECONDS)

    def _failed(self, link: ConfiguredLink | None, error: str) -> QuarantineSeen:
        return QuarantineSeen(error=error)
