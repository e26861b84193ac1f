"""Waits for the start of an application: until each slot of the link that it runs has reported after the submission. Blocks
only briefly in each call, so a thread can serve many."""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from strait.config.naming import application_of
from strait.control.supervision import Supervisor
from strait.planning.status.health import CLUSTER_START_WITHIN_SECONDS, START_WITHIN_SECONDS, Start, start_of
from strait.planning.status.rows import SILENT_MS
from strait.state.link_handle import ConfiguredLink
from strait.state.schema import Plan


class GroupStart:
    """Follows one start. Not thread-safe.

    Args:
        supervisor: that of the link.
        group: the task group that the application runs; "": all of the link, in its pool.
        since_ms: time of the submission, in ms since 1970.
    """

    def __init__(
        self, link: ConfiguredLink, supervisor: Supervisor, group: str, since_ms: int, *, standby: bool = False
    ) -> None:
        self._group = group
        self._standby = standby
        self._name = application_of(link.name, None if group else link.settings.pool, group, standby=standby)
        self._launcher = supervisor.launcher
        self._since_ms = since_ms - SILENT_MS  # clocks of hosts may differ by less than this
        in_cluster = link.settings.spark.deploy_mode == "cluster"
        self._within_seconds = CLUSTER_START_WITHIN_SECONDS if in_cluster else START_WITHIN_SECONDS
        self._began = time.monotonic()
        self._heard: dict[str, set[int]] = defaultdict(set)
        self._state = link.state("plan", "reports")

    def look(self) -> Start | None:
        """Return how the start ended; None: it is still starting.

        Raises:
            ClusterUnavailable, NotAuthorized, StateError, LaunchError
        """
        self._state.catch_up()
        for (group, slot), parts in self._state.reports.items():
            if any(part.started_at_ms >= self._since_ms for part in parts):
                self._heard[group].add(slot)
        found, waited = self._launcher.state(self._name), time.monotonic() - self._began
        starts = [
            start_of(plan, found, self._heard[group], waited, self._within_seconds, standby=self._standby)
            for group, plan in self._plans()
        ]
        failed = next((one for one in starts if one is not None and not one.succeeded), None)
        ended = failed or (None if None in starts else starts[-1])
        if ended is None or not ended.exited or found is None:
            return ended
        return replace(ended, text=f"{ended.text}: {self._launcher.cause(found)}; its log is {found.log}")

    def close(self) -> None:
        self._state.close()

    def _plans(self) -> Iterator[tuple[str, Plan | None]]:
        """Yield the task groups that the application runs with their plans; at least one."""
        if self._group or not self._state.plans:
            yield self._group, self._state.plans.get(self._group)
        else:
            yield from sorted(self._state.plans.items())
