"""A slot's report, and a run of the map, with nothing remarkable in them."""

from typing import Any

from strait.state.report_records import Report
from strait.state.schema import OffsetMapping

_PLAIN: dict[str, Any] = {
    "link": "l",
    "group": "default",
    "slot": 0,
    "part": 0,
    "parts": 1,
    "application": "1",
    "at_ms": 1,
    "started_at_ms": 0,
    "plan_version": 1,
    "strait_version": "0",
    "host": "h",
    "pid": 1,
    "cpu_seconds": 0.0,
    "memory_bytes": 0,
    "records_per_second": 0.0,
    "bytes_per_second": 0.0,
    "latency_ms_p50": None,
    "latency_ms_p99": None,
    "conflicts": 0,
    "recoveries": 0,
    "partitions": (),
}
_RUN: dict[str, Any] = {
    "topic": "t",
    "partition": 0,
    "destination": "t",
    "source_id": "s",
    "destination_id": "d",
    "source_base": 0,
    "destination_base": 0,
    "sequence_base": 0,
    "sequence_end": 0,
    "checkpoint_at_ms": 0,
}


def plain_report(**remarkable: Any) -> Report:
    """Give what the test is about."""
    return Report(**_PLAIN | remarkable)


def plain_run(**remarkable: Any) -> OffsetMapping:
    """Give what the test is about."""
    return OffsetMapping(**_RUN | remarkable)
