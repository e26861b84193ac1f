"""The state of one link at one moment, as an exporter knows it. Plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from strait.planning.plan.pauses import pauses_of
from strait.planning.status.needs import Need
from strait.planning.status.status import Status
from strait.planning.status.summary import LinkSummary, summary_of
from strait.planning.status.words import STATES
from strait.state.failover_records import Failover
from strait.state.group_sync_records import GroupSyncReport
from strait.state.report_records import Report
from strait.state.schema import Loss, LossAcknowledgement, Plan
from strait.state.verified import Verified

Slot = tuple[str, int]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Observation:
    """One link.

    Attributes:
        at: time of the observation, in seconds of the monotonic clock.
        error: why the link cannot be observed now; "" if it was. All else is then the last observation, if there was any.
        plans: task group -> its current plan.
        statuses: one of each task group.
        reports: (task group, slot) -> the parts of its newest report.
        applications: (task group, slot) -> number of applications that have reported since the exporter started.
        losses: the newest; ``loss_acknowledgements``: of each of them; None or missing: it is new. ``loss_counts``: (cause, action) -> number of all losses.
        quarantined: source topic -> number of unresolved records in quarantine.
        needs: the actions of an operator that the link needs, as far as they show in its state.
        failovers: the newest of each kind that has ended.
        audited: source topic -> its verification by audits.
        pool: pool whose application also runs slots of other links; "": the link is in none.
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
    loss_acknowledgements: tuple[LossAcknowledgement | None, ...] = ()
    loss_counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    quarantined: Mapping[str, int] = field(default_factory=dict)
    group_sync: GroupSyncReport | None = None
    failovers: Mapping[str, Failover] = field(default_factory=dict)
    audited: Mapping[str, Verified] = field(default_factory=dict)
    needs: tuple[Need, ...] = ()
    pool: str = ""

    @property
    def new_losses(self) -> int:
        """Number of the newest losses that no operator has acknowledged."""
        return len(self.losses) - sum(said is not None for said in self.loss_acknowledgements)

    @property
    def summary(self) -> LinkSummary:
        """Its key figures and its state as operators see it."""
        if self.error and not self.plans:
            return LinkSummary(self.link, self.source, self.destination, error=self.error)
        pauses = pauses_of(self.plans.values())
        found = summary_of(self.link, self.source, self.destination, self.statuses, pauses, self.needs)
        if not self.error:
            return found
        return replace(found, state="error", badge=STATES["error"], healthy=False, error=self.error)
