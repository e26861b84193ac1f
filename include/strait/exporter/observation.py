"""What an exporter knows of one link at one moment. Plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from strait.planning.status.status import Status
from strait.state.failover_records import Failover
from strait.state.group_sync_records import GroupSyncReport
from strait.state.schema import Loss, Plan, Report

Slot = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Observation:
    """One link.

    Attributes:
        at: monotonic seconds of the look.
        error: why the link could not be looked at; "" where it was. All but the names is empty then.
        plans: task group -> the plan in force.
        statuses: one of each task group.
        reports: (task group, slot) -> the parts of its newest report.
        applications: (task group, slot) -> how many applications have reported since the exporter began.
        losses: the newest; ``loss_counts``: (cause, action) -> how many there are of all.
        quarantined: source topic -> records in quarantine that nobody has settled.
        failovers: the newest of each kind that has ended.
    """

    link: str
    source: str
    destination: str
    at: float
    error: str = ""
    plans: Mapping[str, Plan] = field(default_factory=dict)
    statuses: tuple[Status, ...] = ()
    reports: Mapping[Slot, tuple[Report, ...]] = field(default_factory=dict)
    applications: Mapping[Slot, int] = field(default_factory=dict)
    losses: tuple[Loss, ...] = ()
    loss_counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    quarantined: Mapping[str, int] = field(default_factory=dict)
    group_sync: GroupSyncReport | None = None
    failovers: Mapping[str, Failover] = field(default_factory=dict)
