"""The state of a link's consumer groups, queried from both of its clusters in the background."""

import time
from dataclasses import dataclass, field, replace
from typing import ClassVar

from strait.config.consumer_groups import GroupFilter
from strait.consumer_groups.sync import GroupSync
from strait.exporter.background import BackgroundWatch
from strait.planning.consumer_groups import GroupStatus
from strait.state.link_handle import ConfiguredLink
from strait.waiting import unix_ms

LOOK_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class GroupsSeen:
    """The consumer groups at one moment.

    Attributes:
        at_ms: ms since 1970.
        error: why they cannot be queried now; "" if they were. All else is then as it was last.
        at: time of the observation, in seconds of the monotonic clock.
    """

    at_ms: int
    groups: tuple[GroupStatus, ...] = ()
    error: str = ""
    at: float = field(default_factory=time.monotonic)
    every_seconds: ClassVar[float] = LOOK_SECONDS


class GroupsWatch(BackgroundWatch[GroupsSeen]):
    """Follows all groups that have offsets in the link's topics, whether or not the link selects them."""

    def _follow(self, link: ConfiguredLink) -> None:
        settings = link.settings.consumer_groups
        selected = GroupFilter(settings.include, settings.exclude)
        with GroupSync(link, selected=selected, include_moved=settings.include_moved) as groups:
            while not self._stopped.is_set() and self._load() == link.file:  # called again if settings change
                found = tuple(groups.status(unselected=True))
                self.newest = GroupsSeen(unix_ms(), found)
                self._stopped.wait(LOOK_SECONDS)

    def _failed(self, link: ConfiguredLink | None, error: str) -> GroupsSeen:
        return replace(self.newest or GroupsSeen(unix_ms()), error=error)
