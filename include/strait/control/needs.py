"""Collects the facts that determine which actions of an operator a link needs, for the pure decision in
`strait.planning.status.needs`."""

import time
from collections.abc import Mapping, Sequence

from strait.config.groups import DEFAULT_GROUP
from strait.control.report_history import reports_at
from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.planning.history.lag_growth import AGES_SECONDS, Growth, growing, late
from strait.planning.history.overrun import Reports
from strait.planning.plan.settings import in_force
from strait.planning.status.needs import Circumstances, Dying, Need, needs_of
from strait.planning.status.status import Status
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.waiting import unix_ms

_PAST_SECONDS = 300.0  # for which past reports are reused


class Needs:
    """Determines the needs of one link again and again; past reports are read only while a partition is late.

    Not thread-safe.
    """

    def __init__(self, link: ConfiguredLink) -> None:
        self._link = link
        self._past: Sequence[Reports] = ()
        self._due_at = 0.0

    def of(
        self, state: StateReader, statuses: Sequence[Status], dying: Mapping[str, Dying] | None = None
    ) -> tuple[Need, ...]:
        """Return the actions that the link needs now.

        Args:
            state: follows `plan` and `reports`, and has caught up.
            dying: as `Supervisor.dying` returns it; None: unknown here.

        Raises:
            ClusterUnavailable, NotAuthorized: older reports cannot be read.
        """
        configured = self._link.settings
        try:
            topics = in_force(configured, state.plans.get(DEFAULT_GROUP)).link.topics
        except ConfigError:  # the plan's topics name a task group that the links file no longer has
            topics = configured.topics
        known = Circumstances(topics.include, topics.allow_empty, self._growing(state), dying or {})
        return needs_of(statuses, known)

    def _growing(self, state: StateReader) -> dict[TopicPartition, Growth]:
        found: dict[TopicPartition, Growth] = {}
        for group, plan in state.plans.items():
            if not plan.stopped and late(group, state.reports):
                found |= growing(group, self._earlier(), state.reports)
        return found

    def _earlier(self) -> Sequence[Reports]:
        if time.monotonic() >= self._due_at:
            now_ms = unix_ms()
            ages_ms = [now_ms - age * 1000 for age in AGES_SECONDS]
            self._past = [reports_at(*self._link.destination, self._link.name, at_ms) for at_ms in ages_ms]
            self._due_at = time.monotonic() + _PAST_SECONDS
        return self._past
