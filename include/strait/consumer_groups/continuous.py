"""Consumer groups kept in sync as long as a link's application runs: poll, commit new offsets, report, wait.

The plan sets which groups are synchronized and how often, so an edit takes effect with the next poll. Several
applications of one link may do this side by side: the offsets to write follow from the brokers' responses alone, are
never taken back, and are equal.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Sequence

from strait.config.app_spec import AppSpec
from strait.config.consumer_groups import GroupFilter
from strait.config.groups import DEFAULT_GROUP
from strait.consumer_groups.checkpoints import Checkpoints
from strait.consumer_groups.sync import GroupSync, Ours
from strait.errors import StraitError
from strait.kafka.clients import Rotation
from strait.planning.consumer_groups import GroupStatus, OffsetState
from strait.planning.group_reports import most_urgent
from strait.state.admission import Admission
from strait.state.group_sync_records import GroupSyncReport
from strait.state.link_handle import LinkHandle
from strait.state.schema import PlannedGroupSync
from strait.state.writer import StateWriter
from strait.waiting import unix_ms

log = logging.getLogger(__name__)

_IDLE_SECONDS = 3.0
"""Time between two polls of a plan that sets nothing to synchronize."""
_REPORT_SECONDS = 5.0
"""A report is repeated after this time: readers only consider reports of the last few seconds."""
_AFTER_TROUBLE_SECONDS = 10.0
_AFTER_FLAW_SECONDS = 60.0
_NOT_ADMITTED = (
    "the plan synchronizes other consumer groups than the application was started for, and does not have the link's "
    "signature; none are synchronized"
)


class ContinuousSync:
    """For one application. ``run`` returns once ``stopped`` is set; errors are reported, logged once, and retried."""

    def __init__(self, spec: AppSpec, application: str) -> None:
        self._link = LinkHandle.of_application(spec)
        self._admission = Admission(spec)
        self._application = application
        self._settings: PlannedGroupSync | None = None
        self._checkpoints: Checkpoints | None = None
        self._last: GroupSyncReport | None = None
        self._ours: Ours = {}  # kept across reconnects
        self._trouble = ""

    def run(self, stopped: threading.Event) -> None:
        """Synchronize repeatedly until ``stopped`` is set."""
        while not stopped.is_set():
            try:
                self._follow(stopped)
            except StraitError as error:
                self._complain(" ".join(str(error).split()))
                stopped.wait(_AFTER_TROUBLE_SECONDS)
            except Exception:  # replication continues without it, and a later attempt may succeed
                log.exception("consumer groups: a flaw of Strait")
                stopped.wait(_AFTER_FLAW_SECONDS)

    def _follow(self, stopped: threading.Event) -> None:
        """Synchronize until an error, or until certificates or a password were rotated: clients are then recreated."""
        self._settings = self._checkpoints = None
        rotations = [Rotation(properties) for properties, _ in (self._link.source, self._link.destination)]
        with GroupSync(self._link, ours=self._ours) as groups, _Reports(self._link) as reports:
            while not (stopped.is_set() or any(rotation.due() for rotation in rotations)):
                settings = self._settings_in_force(groups)
                if settings is None:
                    stopped.wait(_IDLE_SECONDS)
                    continue
                began = time.monotonic()
                try:
                    found = groups.sync()
                except StraitError as error:
                    if self._last is not None:
                        trouble = " ".join(str(error).split())
                        reports.write(self._last.model_copy(update={"trouble": trouble}))
                    raise
                trouble = self._write_checkpoints(groups, found, settings)
                seconds = time.monotonic() - began
                self._last = self._report(found, settings, seconds, trouble)
                self._tell(self._last)
                self._pause(reports, self._last, began + settings.interval_seconds, stopped)

    def _pause(self, reports: "_Reports", report: GroupSyncReport, until: float, stopped: threading.Event) -> None:
        while True:
            reports.write(report)
            if stopped.wait(max(0.0, min(_REPORT_SECONDS, until - time.monotonic()))) or time.monotonic() >= until:
                return

    def _settings_in_force(self, groups: GroupSync) -> PlannedGroupSync | None:
        plans = groups.plans()
        default, proof = plans.get(DEFAULT_GROUP, (None, None))
        begun = any(plan.topics for plan, _ in plans.values())
        settings = default.consumer_groups if default is not None and begun and not default.stopped else None
        if not self._admission.admits_groups(settings, proof):
            self._complain(_NOT_ADMITTED)
            settings = None
        if settings != self._settings and settings is not None:
            groups.follow(GroupFilter(settings.include, settings.exclude), include_moved=settings.include_moved)
        self._settings = settings
        return settings

    def _write_checkpoints(self, groups: GroupSync, found: Sequence[GroupStatus], settings: PlannedGroupSync) -> str:
        """Write MirrorMaker 2's checkpoints; return the error or "". The groups themselves are in sync regardless."""
        topics = settings.checkpoints_topic, settings.offset_syncs_topic
        try:
            if self._checkpoints is None or self._checkpoints.topics != topics:
                self._checkpoints = Checkpoints(self._link, *topics) if all(topics) else None
            if self._checkpoints is not None:
                self._checkpoints.write(found, groups.last_records())
        except StraitError as error:
            self._checkpoints = None
            return f"writing MirrorMaker 2's checkpoints: {' '.join(str(error).split())}"
        return ""

    def _report(
        self, found: Sequence[GroupStatus], settings: PlannedGroupSync, seconds: float, trouble: str
    ) -> GroupSyncReport:
        states = Counter[OffsetState]()
        others = [status for status in found if not status.synced]
        for status in found:
            states.update(dict(status.states))
        return GroupSyncReport(
            link=self._link.name,
            application=self._application,
            at_ms=unix_ms(),
            seconds=round(seconds, 3),
            interval_seconds=settings.interval_seconds,
            groups=len(found),
            in_sync=len(found) - len(others),
            offsets={str(state): states[state] for state in OffsetState if states[state]},
            committed=sum(status.committed for status in found),
            rereads=sum(status.rereads or 0 for status in found),
            out_of_sync=most_urgent(others),
            trouble=trouble,
        )

    def _tell(self, report: GroupSyncReport) -> None:
        if report.trouble:
            self._complain(report.trouble)
        elif self._trouble:
            log.info("consumer groups: synchronizing again")
            self._trouble = ""
        if report.committed:
            log.info(
                "consumer groups: %d of %d in sync, %d offsets committed in %.1f s",
                *(report.in_sync, report.groups, report.committed, report.seconds),
            )

    def _complain(self, trouble: str) -> None:
        if trouble != self._trouble:
            self._trouble = trouble
            log.warning("consumer groups: trouble: %s", trouble)


class _Reports:
    """Writes to the reports topic, and on exit waits up to 1 s for the last report."""

    def __init__(self, link: LinkHandle) -> None:
        self._writer = StateWriter(*link.destination, link.name)

    def __enter__(self) -> "_Reports":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.flush(1.0)

    def write(self, report: GroupSyncReport) -> None:
        self._writer.write_report(report)
        self._writer.poll()
