"""Metrics of a link at one moment in the past. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from strait.planning.history.overrun import Reports
from strait.state.report_changes import HistoryPoint
from strait.state.slot_reports import lag_seconds


class Sample(NamedTuple):
    """Combined metrics of all slots that ran at ``at_ms`` (Unix time); None: no slot reported the metric."""

    at_ms: int
    records_per_second: float | None = None
    bytes_per_second: float | None = None
    lag_records: int | None = None
    lag_seconds: float | None = None
    latency_ms_p99: float | None = None
    latency_ms_p50: float | None = None


def sample_of(at_ms: int, reports: Reports) -> Sample:
    """Combine the reports of one moment. All parts of a report have the same metrics of their slot."""
    slots = [parts[0] for parts in reports.values() if parts]
    found = {  # a partition that has just moved is in the reports of two slots: the newest counts
        (row.topic, row.partition): (row.lag_records, lag_seconds(row, part))
        for part in sorted((part for parts in reports.values() for part in parts), key=lambda part: part.at_ms)
        for row in part.partitions
        if row.lag_records >= 0
    }
    rows = list(found.values())
    if not slots:
        return Sample(at_ms)
    return Sample(
        at_ms,
        records_per_second=sum(slot.records_per_second for slot in slots),
        bytes_per_second=sum(slot.bytes_per_second for slot in slots),
        lag_records=sum(records for records, _ in rows) if rows else None,
        lag_seconds=max((seconds for _, seconds in rows), default=None),
        latency_ms_p99=_most(slot.latency_ms_p99 for slot in slots),
        latency_ms_p50=_most(slot.latency_ms_p50 for slot in slots),
    )


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def samples_of(points: Iterable[HistoryPoint], step_ms: int, since_ms: int, until_ms: int) -> list[Sample]:
    """Return the rolled-up history in steps, oldest first, each dated at its end.

    Rates are averages, all other metrics are maxima. A step without any point is included, with all metrics None.
    """
    steps: dict[int, dict[tuple[str, int], list[HistoryPoint]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        steps[point.at_ms // step_ms][point.group, point.slot].append(point)
    numbers = range(-(-since_ms // step_ms), until_ms // step_ms)
    return [_sample((step + 1) * step_ms, steps[step].values() if step in steps else ()) for step in numbers]


def _sample(at_ms: int, slots: Collection[list[HistoryPoint]]) -> Sample:
    if not slots:
        return Sample(at_ms)
    observed = [(slot, max(0.001, sum(point.seconds for point in slot))) for slot in slots]
    lags = [max(known) for slot in slots if (known := [p.lag_records for p in slot if p.lag_records is not None])]
    points = [point for slot in slots for point in slot]
    return Sample(
        at_ms,
        records_per_second=sum(sum(point.records for point in slot) / seconds for slot, seconds in observed),
        bytes_per_second=sum(sum(point.bytes for point in slot) / seconds for slot, seconds in observed),
        lag_records=sum(lags) if lags else None,
        lag_seconds=_most(point.lag_seconds for point in points),
        latency_ms_p99=_most(point.latency_ms_p99 for point in points),
        latency_ms_p50=_most(point.latency_ms_p50 for point in points),
    )
