"""The quarantined records of a link, read in the background."""

import time
from dataclasses import dataclass, field, replace
from typing import ClassVar

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
        error: why they cannot be read; "" if they can. All else is then as it was last.
        at: time of the observation, in seconds of the monotonic clock.
    """

    entries: tuple[Entry, ...] = ()
    error: str = ""
    at: float = field(default_factory=time.monotonic)
    every_seconds: ClassVar[float] = LOOK_SECONDS


class QuarantineWatch(BackgroundWatch[QuarantineSeen]):
    """Follows the quarantine of one link."""

    def _follow(self, link: ConfiguredLink) -> None:
        quarantine = Quarantine(link, keeps_settled=False)
        while not self._stopped.is_set():
            entries = quarantine.contents().entries()
            self.newest = QuarantineSeen(tuple(entry for entry in entries if not entry.settled))
            self._stopped.wait(LOOK_SECONDS)

    def _failed(self, link: ConfiguredLink | None, error: str) -> QuarantineSeen:
        return replace(self.newest or QuarantineSeen(), error=error)
