"""A slot's metrics of itself: rates, latencies, CPU, memory."""

import math
import os
import socket
import time
from array import array
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import psutil

from strait import __version__
from strait.config.app_spec import AppSpec
from strait.engine.partition.send_queue import OutBatch
from strait.state.report_changes import ReportChanges, TrafficReport
from strait.state.report_records import LATENCY_BOUNDS_MS, HeartbeatReport, PartitionReport, Report, ZoneTraffic
from strait.waiting import unix_ms

LATENCY_WINDOW_SECONDS = 60.0
LATENCY_SAMPLES = 4096
RATE_WINDOW_SECONDS = 10.0


class Usage(NamedTuple):
    """CPU time in seconds since the start, and memory in bytes."""

    cpu_seconds: float
    memory_bytes: int


def usage_of_process() -> Usage:
    """Return the usage of this process."""
    process = psutil.Process()
    with process.oneshot():
        cpu = process.cpu_times()
        return Usage(cpu.user + cpu.system, process.memory_info().rss)


class SlotMetrics:
    """Counts acknowledgements and creates the slot's reports. ``usage`` returns the slot's part of its process's
    usage: all of it by default."""

    def __init__(
        self, spec: AppSpec, slot: int, application: str, usage: Callable[[], Usage] = usage_of_process
    ) -> None:
        self.application = application
        self._spec = spec
        self._slot = slot
        self._usage = usage
        self._started_at_ms = unix_ms()
        self._latencies_ms = array("d", bytes(8 * LATENCY_SAMPLES))  # the newest, in a ring
        self._taken_at = array("d", [-math.inf]) * LATENCY_SAMPLES  # monotonic seconds
        self._taken = 0
        self._totals: deque[tuple[float, int, int]] = deque([(time.monotonic(), 0, 0)])
        self._records = 0
        self._bytes = 0
        self._batches = 0
        self._built: Counter[str] = Counter()
        self._latency_counts = [0] * (len(LATENCY_BOUNDS_MS) + 1)
        self._latency_sum_ms = 0.0

    def acked(self, batch: OutBatch, now: float) -> None:
        """Count a batch that is safe on the destination. Its latency is measured only if there was no backlog, since
        the age of a backlog is no measure of it."""
        self._records += batch.records
        self._bytes += len(batch.view)
        self._batches += 1
        if batch.built is not None:
            self._built[batch.built] += 1
        if batch.tailing:
            place = self._taken % LATENCY_SAMPLES
            self._latencies_ms[place] = latency_ms = max(0.0, time.time() * 1000 - batch.max_timestamp_ms)
            self._taken_at[place] = now
            self._taken += 1
            self._latency_counts[bisect_left(LATENCY_BOUNDS_MS, latency_ms)] += 1
            self._latency_sum_ms += latency_ms

    @property
    def totals(self) -> tuple[int, int]:
        """Number of records and bytes that the destination has acknowledged."""
        return self._records, self._bytes

    def report(
        self, plan_version: int, now: float, *, conflicts: int, recoveries: int, heartbeat: HeartbeatReport | None
    ) -> Report:
        """Return the report on the slot as a whole. Its partitions are reported separately, as they change."""
        p50, p99 = self._percentiles(now)
        records_per_second, bytes_per_second = self._rates(now)
        usage = self._usage()
        return Report(
            link=self._spec.link,
            group=self._spec.group,
            slot=self._slot,
            part=0,
            parts=1,
            application=self.application,
            at_ms=unix_ms(),
            started_at_ms=self._started_at_ms,
            plan_version=plan_version,
            strait_version=__version__,
            host=socket.gethostname(),
            pid=os.getpid(),
            cpu_seconds=round(usage.cpu_seconds, 3),
            memory_bytes=usage.memory_bytes,
            records_per_second=records_per_second,
            bytes_per_second=bytes_per_second,
            latency_ms_p50=p50,
            latency_ms_p99=p99,
            latency_counts=tuple(self._latency_counts),
            latency_sum_ms=round(self._latency_sum_ms, 3),
            batches=self._batches,
            built=dict(self._built),
            conflicts=conflicts,
            recoveries=recoveries,
            heartbeat=heartbeat,
            partitions=(),
        )

    def changes(
        self, plan_version: int, now: float, partitions: Sequence[PartitionReport], left: Sequence[tuple[str, int]]
    ) -> ReportChanges:
        """Return the changes to report between two whole reports."""
        p50, p99 = self._percentiles(now)
        records_per_second, bytes_per_second = self._rates(now)
        return ReportChanges.model_construct(
            group=self._spec.group,
            slot=self._slot,
            application=self.application,
            at_ms=unix_ms(),
            started_at_ms=self._started_at_ms,
            plan_version=plan_version,
            records_per_second=records_per_second,
            bytes_per_second=bytes_per_second,
            latency_ms_p50=p50,
            latency_ms_p99=p99,
            partitions=tuple(partitions),
            left=tuple(left),
        )

    def traffic(self, zones: tuple[ZoneTraffic, ...]) -> TrafficReport:
        """Return the report on the bytes exchanged with each zone."""
        return TrafficReport(
            group=self._spec.group,
            slot=self._slot,
            application=self.application,
            at_ms=unix_ms(),
            started_at_ms=self._started_at_ms,
            traffic=zones,
        )

    def _percentiles(self, now: float) -> tuple[float | None, float | None]:
        recent = np.frombuffer(self._taken_at) >= now - LATENCY_WINDOW_SECONDS
        ordered = np.sort(np.frombuffer(self._latencies_ms)[recent])
        if not len(ordered):
            return None, None
        return round(float(ordered[len(ordered) // 2]), 3), round(float(ordered[len(ordered) * 99 // 100]), 3)

    def _rates(self, now: float) -> tuple[float, float]:
        self._totals.append((now, self._records, self._bytes))
        while len(self._totals) > 2 and self._totals[0][0] < now - RATE_WINDOW_SECONDS:
            self._totals.popleft()
        then, records, size = self._totals[0]
        seconds = max(1e-3, now - then)
        return round((self._records - records) / seconds, 1), round((self._bytes - size) / seconds, 1)
