"""Observation of a link: its plans, reports and losses as they arrive, other data periodically."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from strait.audit.publishing import ResultLog
from strait.config.links import LinksFile
from strait.control.failover.journal import Journal
from strait.control.group_status import group_status
from strait.control.needs import Needs
from strait.control.quarantine import Quarantine
from strait.exporter.background import BackgroundWatch
from strait.exporter.observation import Observation, Slot
from strait.model import TopicPartition
from strait.planning.status.status import Status
from strait.state.failover_records import Failover
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.state.schema import Plan
from strait.state.verified import Results, verified

_POLL_SECONDS = 1.0
_SELDOM_SECONDS = 60.0
"""Time between two reads of topics that are read as a whole: quarantine, failovers and audits."""
_LOSSES_KEPT = 1000


class LinkFollower(BackgroundWatch[Observation]):
    """Follows one link's state topics.

    Args:
        interval_seconds: time between two observations.
    """

    def __init__(self, load: Callable[[], LinksFile], link: str, interval_seconds: float) -> None:
        super().__init__(load, link)
        self._interval_seconds = interval_seconds
        self._applications: dict[Slot, set[str]] = defaultdict(set)
        self._written: dict[TopicPartition, int] = {}

    def _failed(self, link: ConfiguredLink | None, error: str) -> Observation:
        if self.newest is not None:
            return replace(self.newest, error=error)
        ends = ("", "") if link is None else (link.source.name, link.destination.name)
        return Observation(self._link, *ends, time.monotonic(), error=error)

    def _follow(self, link: ConfiguredLink) -> None:
        seldom, needs = _Seldom(link), Needs(link)
        with link.state("plan", "reports", "losses", most_losses=_LOSSES_KEPT) as state:
            state.catch_up()
            while not self._stopped.is_set():
                self.newest = self._look(link, state, seldom, needs)
                due = time.monotonic() + self._interval_seconds
                while (left := due - time.monotonic()) > 0 and not self._stopped.is_set():
                    state.poll(min(_POLL_SECONDS, left))
                    self._note_applications(state)
                state.catch_up()  # raises if the destination no longer responds

    def _look(self, link: ConfiguredLink, state: StateReader, seldom: "_Seldom", needs: Needs) -> Observation:
        self._note_applications(state)
        plans = dict(state.plans)
        quarantined, failovers, results = seldom.look(plans.values())
        statuses = tuple(self._counted(group_status(link, group, state)) for group in sorted(plans))
        return Observation(
            link=self._link,
            source=link.source.name,
            destination=link.destination.name,
            at=time.monotonic(),
            plans=plans,
            statuses=statuses,
            reports=dict(state.reports),
            applications={slot: len(heard) for slot, heard in self._applications.items()},
            losses=state.losses,
            loss_acknowledgements=state.loss_acknowledgements,
            loss_counts=dict(state.loss_counts),
            quarantined=quarantined,
            group_sync=state.group_sync,
            failovers=failovers,
            audited=verified((topic for plan in plans.values() for topic in plan.topics), results),
            needs=needs.of(state, statuses),
            pool=link.settings.pool or "",
        )

    def _counted(self, status: Status) -> Status:
        """Return the status with the last known count of partitions that are being started, or the counters of their
        topics would jump back and forth."""
        for row in status.partitions:
            if row.written >= 0 and row.partition is not None:
                self._written[TopicPartition(row.topic, row.partition)] = row.written
        rows = (
            replace(row, written=self._written.get(TopicPartition(row.topic, row.partition), -1))
            if row.written < 0 and row.partition is not None
            else row
            for row in status.partitions
        )
        return replace(status, partitions=tuple(rows))

    def _note_applications(self, state: StateReader) -> None:
        for slot, parts in state.reports.items():
            self._applications[slot].update(part.application for part in parts)


_Found = tuple[Mapping[str, int], Mapping[str, Failover], Results]


class _Seldom:
    """Data that changes seldom and requires reading a whole topic."""

    def __init__(self, link: ConfiguredLink) -> None:
        self._quarantine = Quarantine(link, keeps_settled=False)
        self._journal = Journal(link)
        self._results = ResultLog(link.destination, link.name)
        self._due_at = 0.0
        self._found: _Found = {}, {}, {}

    def look(self, plans: Iterable[Plan]) -> _Found:
        """Return source topic -> number of unresolved records in quarantine; kind -> its newest failover that has
        ended; the newest results of audits."""
        if time.monotonic() >= self._due_at:
            quarantines = any(topic.policy.on_refused == "quarantine" for plan in plans for topic in plan.topics)
            entries = self._quarantine.contents().entries() if quarantines else ()
            ended = [one for one in self._journal.all() if one.ended_at_ms is not None]
            newest: dict[str, Failover] = {one.kind: one for one in sorted(ended, key=lambda one: one.began_at_ms)}
            unsettled = Counter(entry.topic for entry in entries if not entry.settled)
            self._found = unsettled, newest, self._results.newest()
            self._due_at = time.monotonic() + _SELDOM_SECONDS
        return self._found
