"""The offset map of a link, read in the background as it is written."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strait.exporter.background import BackgroundWatch
from strait.state.link_handle import ConfiguredLink
from strait.state.schema import OffsetMapping

LOOK_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class RunsSeen:
    """The offset map at one moment.

    Attributes:
        runs: (source topic, partition) -> its offset segments, by sequence_base.
        error: why it cannot be read; "" if it can. All else is then as it was last.
        at: time of the observation, in seconds of the monotonic clock.
    """

    runs: Mapping[tuple[str, int], tuple[OffsetMapping, ...]] = field(default_factory=dict)
    error: str = ""
    at: float = field(default_factory=time.monotonic)
    every_seconds: ClassVar[float] = LOOK_SECONDS


class RunsWatch(BackgroundWatch[RunsSeen]):
    """Follows the offset map of one link."""

    def _follow(self, link: ConfiguredLink) -> None:
        with link.state("map") as state:
            while not self._stopped.is_set():
                state.catch_up()
                self.newest = RunsSeen(dict(state.runs))
                self._stopped.wait(LOOK_SECONDS)

    def _failed(self, link: ConfiguredLink | None, error: str) -> RunsSeen:
        return replace(self.newest or RunsSeen(), error=error)
