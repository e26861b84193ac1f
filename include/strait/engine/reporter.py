"""A slot's reports: every second the changes, every few seconds a report on the slot as a whole, and its partitions in
rotation. The cost depends on the number of changes."""

import math
from collections.abc import Callable, Iterable, Iterator

from strait.engine.partition.changes import Changes
from strait.engine.partition.partition import Partition
from strait.engine.partition.report import report_of
from strait.engine.slot_history import SlotHistory
from strait.engine.slot_metrics import SlotMetrics
from strait.state.report_changes import REPEAT_SECONDS, HistoryPoint, ReportChanges
from strait.state.report_records import HeartbeatReport, PartitionReport, Report
from strait.waiting import unix_ms

REPORT_SECONDS = 1.0
WHOLE_SECONDS = 4.0
"""Time between two whole reports. Versions that read only these consider a slot silent after 5 s."""
ROWS = 250
"""Largest number of changed partitions in one report, which takes 2 to 4 ms of the loop's time."""
_SOON_SECONDS = 0.25  # until the next report, if more changes of state wait than one holds
_TOGETHER = 100  # partitions due for repetition are reported once there are this many, which compresses better,
_TOGETHER_SECONDS = 10.0  # or after this
_OFTEN = 0.9  # partitions are repeated sooner than required, since reports may come late

Reported = Report | ReportChanges | HistoryPoint


class _Told:
    """The last reported values of one partition, for the sums."""

    __slots__ = ("conflicts", "lag_records", "newest_ms", "recoveries")

    def __init__(self) -> None:
        self.conflicts = self.recoveries = 0
        self.lag_records = -1
        self.newest_ms = -1


class Reporter:
    """Creates the reports of one slot.

    Args:
        heartbeat: returns the current state of the heartbeats.
    """

    def __init__(
        self,
        metrics: SlotMetrics,
        changes: Changes[Partition],
        history: SlotHistory,
        heartbeat: Callable[[float], HeartbeatReport | None],
    ) -> None:
        self._metrics = metrics
        self._changes = changes
        self._history = history
        self._heartbeat = heartbeat
        self._whole_at = self._last_at = self._repeat_at = -math.inf
        self._turns = 0.0  # number of partitions that are due to be repeated
        self._told: dict[tuple[str, int], _Told] = {}
        self._lagging: dict[tuple[str, int], _Told] = {}
        self._conflicts = self._recoveries = self._lag_records = self._known = 0
        self.next_at = -math.inf
        """When there is something to report again, in monotonic seconds."""

    def due(self, plan_version: int, now: float) -> Iterator[Reported]:
        """Yield the records to report now; ``now`` is in monotonic seconds."""
        at_ms = unix_ms()
        left = self._changes.take_left()
        for place in left:
            self._forget(place)
        rows = [self._row(partition, at_ms) for partition in self._take(now)]
        whole = now >= self._whole_at
        p50 = p99 = None
        if whole:
            self._whole_at = now + WHOLE_SECONDS
            report = self._metrics.report(
                plan_version,
                now,
                conflicts=self._conflicts,
                recoveries=self._recoveries,
                heartbeat=self._heartbeat(now),
            )
            p50, p99 = report.latency_ms_p50, report.latency_ms_p99
            yield report
        if rows or left or not whole:
            yield self._metrics.changes(plan_version, now, rows, left)
        yield from self._history.observe(
            at_ms,
            self._metrics.totals,
            lag_records=self._lag_records if self._known else None,
            lag_seconds=self._lag_seconds(at_ms) if whole and self._known else None,
            latency_ms_p50=p50,
            latency_ms_p99=p99,
        )
        self.next_at = now + (_SOON_SECONDS if self._changes.urgent else REPORT_SECONDS)

    def close(self, plan_version: int, now: float) -> Iterator[Reported]:
        """Yield the last reports: all changes, and a whole report."""
        self._whole_at = -math.inf
        yield from self.due(plan_version, now)
        while self._changes.waits:
            yield from self.due(plan_version, now)
        yield from self._history.close(unix_ms(), self._metrics.totals)

    def _take(self, now: float) -> Iterable[Partition]:
        changed = self._changes.take(ROWS)
        seconds = max(0.0, min(now - self._last_at, WHOLE_SECONDS))
        self._last_at = now
        self._turns = min(self._turns + seconds * len(self._changes) / (REPEAT_SECONDS * _OFTEN), len(self._changes))
        if self._turns < _TOGETHER and now < self._repeat_at:
            return changed
        self._repeat_at = now + _TOGETHER_SECONDS
        repeated = math.ceil(self._turns)
        self._turns = 0.0
        return changed + self._changes.repeat(repeated)

    def _row(self, partition: Partition, at_ms: int) -> PartitionReport:
        row = report_of(partition, at_ms)
        place = row.topic, row.partition
        told = self._told.get(place)
        if told is None:
            told = self._told[place] = _Told()
        self._conflicts += partition.queue.conflicts - told.conflicts
        self._recoveries += partition.position.recoveries - told.recoveries
        told.conflicts, told.recoveries = partition.queue.conflicts, partition.position.recoveries
        known = row.lag_records if row.position >= 0 and row.end >= 0 else -1
        self._known += (known >= 0) - (told.lag_records >= 0)
        self._lag_records += max(0, known) - max(0, told.lag_records)
        told.lag_records, told.newest_ms = known, partition.totals.last_timestamp_ms
        if known > 0 and told.newest_ms >= 0:
            self._lagging[place] = told
        else:
            self._lagging.pop(place, None)
        return row

    def _forget(self, place: tuple[str, int]) -> None:
        told = self._told.pop(place, None)
        self._lagging.pop(place, None)
        if told is not None:
            self._known -= told.lag_records >= 0
            self._lag_records -= max(0, told.lag_records)

    def _lag_seconds(self, at_ms: int) -> float:
        oldest = min((told.newest_ms for told in self._lagging.values()), default=at_ms)
        return max(0.0, round((at_ms - oldest) / 1000, 3))
