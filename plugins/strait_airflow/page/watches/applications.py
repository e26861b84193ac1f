"""The applications of a link, as far as this host can see them, queried from their launcher in the background."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from strait.config.links import Link
from strait.config.naming import application_of
from strait.exporter.background import BackgroundWatch
from strait.launch.overview import overview
from strait.state.link_handle import ConfiguredLink
from strait.waiting import unix_ms
from strait_airflow.applications import launcher

LOOK_SECONDS = 10.0
_LOG_BYTES = 8 * 1024
_LOG_LINES = 30


@dataclass(frozen=True, slots=True)
class ApplicationsSeen:
    """The applications at one moment.

    Attributes:
        applications: each with its submissions (see `strait.launch.overview`), `group`, `standby` and `log_lines`, the
            last ones of the newest submission.
        error: why they cannot be queried; "" if they can. All else is then as it was last.
        at: time of the observation, in seconds of the monotonic clock.
    """

    applications: tuple[dict[str, Any], ...] = ()
    error: str = ""
    at: float = field(default_factory=time.monotonic)
    every_seconds: ClassVar[float] = LOOK_SECONDS


class ApplicationsWatch(BackgroundWatch[ApplicationsSeen]):
    """Follows the applications of one link. It needs no connection to Kafka."""

    def _follow(self, link: ConfiguredLink) -> None:
        self.newest = ApplicationsSeen(tuple(self._look(link.settings)))
        self._stopped.wait(LOOK_SECONDS)

    def _failed(self, link: ConfiguredLink | None, error: str) -> ApplicationsSeen:
        return replace(self.newest or ApplicationsSeen(), error=error)

    def _look(self, link: Link) -> Iterator[dict[str, Any]]:
        launch, now_ms = launcher(link.spark), unix_ms()
        for group in sorted(link.groups):
            for standby in (False, True) if link.pool is None else (False,):
                name = application_of(self._link, link.pool, group, standby=standby)
                for found in overview(launch, (name,), now_ms):
                    newest = launch.state(name)
                    text = "" if newest is None else launch.log_tail(newest, _LOG_BYTES)
                    yield found | {"group": group, "standby": standby, "log_lines": text.splitlines()[-_LOG_LINES:]}
