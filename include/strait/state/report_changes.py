"""Schema of the records of the reports topic that have only changes, and of the history topic.

reports  key {"group", "slot", "part": "changes"}           value ReportChanges   once a second
         key {"group", "slot", "part": "traffic"}           value TrafficReport   twice a minute, if zones are known
         key {"group", "slot", "part": "failure"}           value FailureReport   when a slot of a pool fails
history  key {"group", "slot", "span", "place", "began"}    value HistoryPoint    compacted

A slot writes a whole `Report`, without partitions, every few seconds, and `ReportChanges` every second. Versions
without `ReportChanges` read those reports, which show that the slot is running, and report the others as unreadable;
so do versions without `TrafficReport` or `FailureReport`. These records omit fields that have their default, except `v`.
"""

from typing import Literal

from pydantic import Field

from strait.state.record import Record, Told
from strait.state.report_records import PartitionReport, ZoneTraffic

REPEAT_SECONDS = 150
"""Every partition is reported at least once in this time, changed or not: a reader that reads back this far has all of
them."""

MOST_ZONES = 1_000
"""Maximum number of entries in a `TrafficReport`: at most four for each zone of both clusters."""

SPANS_MS = {"minute": 60_000, "hour": 3_600_000}
KEPT = {"minute": 24 * 60, "hour": 35 * 24}
"""Number of points that are kept of each span. A new one replaces the one that is this many spans older, under its key,
so that the topic is as large after a year as after a month."""


class _OfSlot(Record):
    v: Literal[1] = 1
    group: str
    slot: int
    application: Told = Field(description="As in the slot's reports.")
    at_ms: int


class ReportChanges(_OfSlot):
    """Changes of one slot since its previous record, written once a second."""

    started_at_ms: int = Field(description="As in the slot's reports.")
    plan_version: int = 0
    records_per_second: float = 0.0
    bytes_per_second: float = 0.0
    latency_ms_p50: float | None = None
    latency_ms_p99: float | None = None
    partitions: tuple[PartitionReport, ...] = Field(
        (),
        description="Those that have changed, and some that have not, so that each is told every two and a half minutes.",
    )
    left: tuple[tuple[str, int], ...] = Field((), description="Topic and partition of those it copies no more.")


class TrafficReport(_OfSlot):
    """Bytes that a slot has exchanged with the brokers of each zone since its start."""

    started_at_ms: int = Field(description="As in the slot's reports.")
    traffic: tuple[ZoneTraffic, ...] = Field((), max_length=MOST_ZONES)


class FailureReport(_OfSlot):
    """Why a slot that shares its process with others has failed. It is started again, and reports once it runs."""

    failure: Told = Field(description="The error.")
    restart_seconds: float = Field(description="Time until it is started again.")


class HistoryPoint(Record):
    """A minute or an hour of one slot. ``at_ms`` is the start of its observation: the start of the span, or later if
    the slot was started within it; each start then has a separate point."""

    v: Literal[1] = 1
    group: str
    slot: int
    span: Literal["minute", "hour"]
    at_ms: int
    seconds: float = Field(description="How long it was observed.")
    records: int = Field(0, description="Copied in this time.")
    bytes: int = Field(0, description="Copied in this time, as they are on the wire.")
    lag_records: int | None = Field(None, description="Of all partitions, at most; None: of none was it known.")
    lag_seconds: float | None = Field(None, description="Of the partition furthest behind, at most.")
    latency_ms_p99: float | None = Field(None, description="Of some seconds, at most; None: no data.")
    latency_ms_p50: float | None = Field(None, description="The same; older versions do not have it.")
