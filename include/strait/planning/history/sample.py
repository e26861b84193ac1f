"""A link at one moment of its past, in a few figures. Pure."""

from typing import NamedTuple

from strait.planning.history.overrun import Reports


class Sample(NamedTuple):
    """What all slots that ran at ``at_ms`` (since 1970) said together; None: none of them said it."""

    at_ms: int
    records_per_second: float | None = None
    bytes_per_second: float | None = None
    lag_records: int | None = None
    lag_seconds: float | None = None
    latency_ms_p99: float | None = None


def sample_of(at_ms: int, reports: Reports) -> Sample:
    """Of the reports of that time. Every part of a report says the same of its slot."""
    slots = [parts[0] for parts in reports.values() if parts]
    rows = [row for parts in reports.values() for part in parts for row in part.partitions if row.lag_records >= 0]
    latencies = [slot.latency_ms_p99 for slot in slots if slot.latency_ms_p99 is not None]
    if not slots:
        return Sample(at_ms)
    return Sample(
        at_ms,
        records_per_second=sum(slot.records_per_second for slot in slots),
        bytes_per_second=sum(slot.bytes_per_second for slot in slots),
        lag_records=sum(row.lag_records for row in rows) if rows else None,
        lag_seconds=max((row.lag_seconds for row in rows), default=None),
        latency_ms_p99=max(latencies, default=None),
    )
