"""Schema of slots' reports in the reports topic; see `strait.state.schema`."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from strait.state.record import Offset, Reason, Record, Told


class PartitionReport(Record):
    """State of one partition, and the reason for it.

    ``position``: next source offset to copy, all before it is acknowledged; -1 before the first recovery.
    ``end``: the source's last stable offset (exclusive) as last seen; -1 before the first fetch.
    ``lag_seconds``: age of the newest copied record if a newer one waits, else 0.
    """

    topic: str
    partition: int
    state: Literal["starting", "copying", "caught_up", "waiting"]
    reason: Reason | None = None
    detail: Told = ""
    position: int
    end: int
    lag_records: int
    lag_seconds: float
    records: int = Field(description="Copied since the slot's start.")
    bytes: int = Field(description="Copied since the slot's start, as they are on the wire.")
    recopied: int = Field(
        0,
        description="Copied again since the slot's start, because compaction left nothing that tells how far the copy was.",
    )
    log_start: int = Field(-1, description="First offset that the source still holds, as last seen; -1: not seen yet.")
    left_out: int = Field(0, description="Copies among the source's records that were left out since the slot's start.")
    written: int = Field(-1, description="Records that the link has ever written to it; -1: not looked up yet.")
    held_back_records: int = Field(
        0,
        description="Source offsets after `end` that an open transaction holds back: `end` and these add up to the "
        "high watermark.",
    )
    held_since_ms: int = Field(-1, description="Since when; -1: none are.")
    at_ms: int = Field(-1, description="When this was so; -1: when its report was made, in those of older versions.")


class HeartbeatReport(Record):
    """State of the heartbeats, from the slot that writes and copies them."""

    written_at_ms: int = Field(description="Of the newest one that the source has acknowledged; -1: none yet.")
    arrived_ms: int = Field(description="When the newest one was written that the destination has; -1: none yet.")
    latency_ms: float | None = Field(description="What that one took, from its timestamp to the acknowledgement.")
    trouble: Told = Field("", description="Why the last one was not written; empty: nothing is wrong.")


class ZoneTraffic(Record):
    """Bytes that a slot has exchanged with brokers of one zone, in one direction, since its start."""

    cluster: Literal["source", "destination"] = Field(description="Whose brokers.")
    from_zone: Told = Field(description="Rack of the broker or the slot that has sent them; empty: unknown.")
    to_zone: Told = Field(description="Rack of the slot or the broker that has received them.")
    bytes: Offset = Field(description="On connections for records, with their requests, without TLS and TCP.")


LATENCY_BOUNDS_MS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10000.0, 60000.0)


class Report(Record):
    """State of one slot, every few seconds. The state of its partitions is in `ReportChanges`
    (strait.state.report_changes). Older versions write one report per second, with all partitions, split if these are
    many: ``part`` of ``parts``."""

    v: Literal[1] = 1
    link: str
    group: str
    slot: int
    part: int
    parts: int
    application: Told = Field(description="Which running copy of the application this is.")
    at_ms: int
    started_at_ms: int
    plan_version: int = Field(description="The plan in force in this slot; 0 before the first.")
    strait_version: Told
    host: Told
    pid: int
    cpu_seconds: float = Field(description="Of this slot's process since it started.")
    memory_bytes: int = Field(description="Resident, of this slot's process.")
    records_per_second: float
    bytes_per_second: float
    latency_ms_p50: float | None = Field(description="Record timestamp to acknowledgement, last minute; None: no data.")
    latency_ms_p99: float | None
    latency_counts: tuple[int, ...] = Field(
        (),
        description="Batches since the slot's start by latency: up to each of LATENCY_BOUNDS_MS, and above. As for the percentiles.",
    )
    latency_sum_ms: float = Field(0.0, description="Of these batches.")
    batches: int = Field(0, description="Batches that the destination has acknowledged since the slot's start.")
    built: Mapping[str, int] = Field(
        default_factory=dict, description="Of these, ones that are not the source's own, by why they had to be built."
    )
    conflicts: int = Field(
        description="Batches that another writer of this link had already written, since the slot's start."
    )
    recoveries: int = Field(
        description="Times a partition's position was looked up on the destination, since the slot's start."
    )
    heartbeat: HeartbeatReport | None = Field(None, description="From the slot that copies heartbeats.")
    traffic: tuple[ZoneTraffic, ...] = Field(
        (), exclude=True, description="From the slot's `TrafficReport`; not written with the report."
    )
    partitions: tuple[PartitionReport, ...]
