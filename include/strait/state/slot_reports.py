"""Combination of slots' reports: the newest row of each partition with the newest report of its slot. Pure."""

from collections.abc import Callable, Iterator, Mapping
from itertools import chain

from strait.state.report_changes import REPEAT_SECONDS, FailureReport, ReportChanges, TrafficReport
from strait.state.report_records import PartitionReport, Report

PACE_MS = 10_000
"""Minimum time between two reports from which a slot's throughput is computed; a new reader reads back more than
this."""

REPORT_MEMORY_MS = 60_000
"""A report this much older than the newest one is dropped: the application that wrote it is no longer running."""

_ROW_MEMORY_MS = 3 * REPEAT_SECONDS * 1000
"""A partition that a reporting slot has not reported for this long is no longer assigned to the slot."""

_IN_BOTH = ("plan_version", "records_per_second", "bytes_per_second", "latency_ms_p50", "latency_ms_p99")

Slot = tuple[str, int]


def said_at(row: PartitionReport, report: Report) -> int:
    """Return the time of a partition's row in ms since 1970, by the clock of the slot's host."""
    return report.at_ms if row.at_ms < 0 else row.at_ms


def lag_seconds(row: PartitionReport, report: Report) -> float:
    """Return a partition's lag at the time of the report; one that was not reported again has not moved since."""
    older = max(0, report.at_ms - said_at(row, report)) / 1000 if row.lag_seconds > 0 else 0.0
    return row.lag_seconds + older


class _Application:
    """The reports of one running application about one slot."""

    def __init__(self) -> None:
        self._parts: dict[int, Report] = {}
        self._news: ReportChanges | None = None
        self._traffic: TrafficReport | None = None
        self._rows: dict[tuple[str, int], PartitionReport] = {}
        self._made: tuple[Report, ...] | None = None
        self.earlier: tuple[Report, ...] = ()
        self._later: tuple[Report, ...] = ()
        self.at_ms = -1
        self.failure: FailureReport | None = None

    def take(self, report: Report) -> None:
        """Add a whole report, with all partitions or, beside `ReportChanges`, with none."""
        self._begin(report.started_at_ms)
        self._parts = {part: other for part, other in self._parts.items() if part < report.parts}
        self._parts[report.part] = report
        self._heard(report.at_ms)

    def take_changes(self, changes: ReportChanges) -> None:
        self._begin(changes.started_at_ms)
        self._news = changes
        for row in changes.partitions:
            self._rows[row.topic, row.partition] = row
        for place in changes.left:
            self._rows.pop(place, None)
        self._heard(changes.at_ms)

    def take_traffic(self, traffic: TrafficReport) -> None:
        self._begin(traffic.started_at_ms)
        self._traffic, self._made = traffic, None

    def take_failure(self, failure: FailureReport) -> None:
        if failure.at_ms >= self.at_ms:
            self.failure, self.at_ms = failure, failure.at_ms

    @property
    def reports(self) -> tuple[Report, ...]:
        """The newest reports, complete. Empty before the first whole report was read."""
        if self._made is None:
            whole = tuple(self._parts[part] for part in sorted(self._parts))
            self._made = whole if self._news is None else tuple(self._updated(report) for report in whole[:1])
            if self._traffic is not None:
                told = {"traffic": self._traffic.traffic}
                self._made = tuple(report.model_copy(update=told) for report in self._made)
        return self._made

    def _begin(self, started_at_ms: int) -> None:
        """Drop the changes from before a restart of the slot, whose counters restart as well."""
        if self._news is not None and self._news.started_at_ms != started_at_ms:
            self._news = None
            self._rows.clear()
        if self._traffic is not None and self._traffic.started_at_ms != started_at_ms:
            self._traffic = None

    def _heard(self, at_ms: int) -> None:
        if self.failure is not None and at_ms >= self.failure.at_ms:
            self.failure = None
        self.at_ms, self._made = max(self.at_ms, at_ms), None
        if not self._later:
            self.earlier = self._later = self.reports
        elif at_ms - self._later[0].at_ms > PACE_MS:
            self.earlier, self._later = self._later, self.reports

    def _updated(self, report: Report) -> Report:
        since_ms = self.at_ms - _ROW_MEMORY_MS
        rows = tuple(row for row in self._rows.values() if row.at_ms >= since_ms)
        update: dict[str, object] = {"at_ms": self.at_ms, "partitions": rows}
        if self._news is not None and self._news.at_ms >= report.at_ms:
            update |= {name: getattr(self._news, name) for name in _IN_BOTH}
        return report.model_copy(update=update)


class SlotReports(Mapping[Slot, tuple[Report, ...]]):
    """(task group, slot) -> its reports, of each application that runs this slot; more than one is allowed, and
    harmless. They are combined when they are requested."""

    def __init__(self) -> None:
        self._of: dict[Slot, dict[str, _Application]] = {}

    def take(self, report: Report | ReportChanges | TrafficReport | FailureReport) -> None:
        """Add a record that a slot has written."""
        slot = report.group, report.slot
        applications = self._of.setdefault(slot, {})
        application = applications.get(report.application)
        if application is None:
            application = applications[report.application] = _Application()
        if isinstance(report, Report):
            application.take(report)
        elif isinstance(report, ReportChanges):
            application.take_changes(report)
        elif isinstance(report, FailureReport):
            application.take_failure(report)
        else:
            application.take_traffic(report)
        since_ms = report.at_ms - REPORT_MEMORY_MS
        for name in [name for name, other in applications.items() if other.at_ms <= since_ms]:
            del applications[name]

    def __getitem__(self, slot: Slot) -> tuple[Report, ...]:
        return _all(self._of[slot], lambda one: one.reports)

    def heard(self) -> dict[Slot, int]:
        """Return when each slot has last reported anything, be it a failure, in ms since 1970."""
        return {slot: max(one.at_ms for one in found.values()) for slot, found in self._of.items()}

    def failures(self) -> dict[Slot, FailureReport]:
        """Return the failures of the slots that have not reported anything since."""
        newest = {slot: max(found.values(), key=lambda one: one.at_ms) for slot, found in self._of.items()}
        return {slot: one.failure for slot, one in newest.items() if one.failure is not None}

    def earlier(self) -> dict[Slot, tuple[Report, ...]]:
        """Return for each of these reports one of the same application from some seconds before; the same one if there
        is no other."""
        return {slot: _all(found, lambda one: one.earlier) for slot, found in self._of.items()}

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._of)

    def __len__(self) -> int:
        return len(self._of)


def _all(
    applications: Mapping[str, _Application], of: Callable[[_Application], tuple[Report, ...]]
) -> tuple[Report, ...]:
    return tuple(chain.from_iterable(of(applications[name]) for name in sorted(applications)))
