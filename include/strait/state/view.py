"""The state of one link as its state topics tell it, record after record. Pure: no Kafka, no clock.

A record that cannot be read changes nothing: the last good value under its key stays in force, and the trouble is kept
until a good record or a tombstone comes under the same key.
"""

from collections import defaultdict
from typing import Literal, NamedTuple

from strait.config import naming
from strait.errors import StateError
from strait.state.codec import PlanKey, Unreadable, decode, decode_key, kind_of_report
from strait.state.loss_log import LossLog
from strait.state.runs import RunsByPartition
from strait.state.schema import GroupSyncReport, Loss, Plan, Report

Kind = Literal["plan", "map", "reports", "losses"]

PACE_MS = 10_000
"""Reports at least so far apart tell how fast a slot copies; a fresh reader reads back a little more than this."""

REPORT_MEMORY_MS = 60_000
"""A report this much older than the newest one is forgotten: the application that wrote it is gone."""


class Place(NamedTuple):
    """Where a record lies."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"topic {self.topic} partition {self.partition} offset {self.offset}"


class StateView:
    """Plans, runs, reports and losses of one link.

    Attributes:
        plans: group -> its plan in force.
        runs: (source topic, partition) -> its runs, by sequence_base.
        reports: (group, slot) -> the newest report of every part of every application that runs this slot; more than
            one application is allowed, and harmless.
        earlier_reports: (group, slot) -> for each of these reports one of the same part and application from some
            seconds before; the same one where there is no other.
        group_sync: how consumer groups stood at the last look at them; None: nothing was reported.
        losses: the loss ledger.

    Args:
        most_losses: so many of the newest losses are kept; None: all.
    """

    def __init__(self, link: str, most_losses: int | None = None) -> None:
        self._link = link
        self.plans: dict[str, Plan] = {}
        self.runs = RunsByPartition(self._run_not_read)
        self.reports: dict[tuple[str, int], tuple[Report, ...]] = {}
        self.earlier_reports: dict[tuple[str, int], tuple[Report, ...]] = {}
        self.group_sync: GroupSyncReport | None = None
        self._later_reports: dict[tuple[str, int], tuple[Report, ...]] = {}  # what takes their place next
        self.losses = LossLog(most_losses)
        self._troubles: dict[Kind, dict[bytes | None, StateError]] = defaultdict(dict)

    def trouble(self, *kinds: Kind) -> StateError | None:
        """The first record among these kinds that could not be read and is still in its place."""
        return next((error for kind in kinds for error in self._troubles[kind].values()), None)

    def apply(self, kind: Kind, raw_key: bytes | None, raw_value: bytes | None, place: Place) -> bool:
        """Take in one record; return whether anything changed, trouble included."""
        had_trouble = self._troubles[kind].pop(raw_key, None) is not None
        if raw_value is None:
            return self._forget(kind, raw_key) or had_trouble
        try:
            if kind == "plan":
                self._take_plan(decode(Plan, raw_key, raw_value))
            elif kind == "map":
                self.runs.put(raw_key, raw_value, place.offset)
            elif kind == "losses":
                self._take_loss(decode(Loss, raw_key, raw_value))
            elif kind_of_report(raw_key) is GroupSyncReport:
                self.group_sync = decode(GroupSyncReport, raw_key, raw_value)
            else:
                self._take_report(decode(Report, raw_key, raw_value))
        except Unreadable as error:
            self._not_read(kind, raw_key, place, error)
        return True

    def _run_not_read(self, raw_key: bytes, offset: int, error: Unreadable) -> None:
        self._not_read("map", raw_key, Place(naming.map_topic(self._link), 0, offset), error)

    def _not_read(self, kind: Kind, raw_key: bytes | None, place: Place, error: Unreadable) -> None:
        self._troubles[kind][raw_key] = StateError(
            f"link {self._link}: reading its state: the record at {place} cannot be read: {error}",
            hint="the last good state stays active; upgrade Strait if a newer one wrote it, "
            "else write a good record or a tombstone under the same key",
        )

    def _take_plan(self, plan: Plan) -> None:
        if plan.link != self._link:
            raise Unreadable(f"it is a plan of link {plan.link!r}")
        self.plans[plan.group] = plan

    def _take_report(self, report: Report) -> None:
        kept = [
            other
            for other in self.reports.get((report.group, report.slot), ())
            if (other.application, other.part) != (report.application, report.part)
            and (other.application != report.application or other.part < report.parts)
            and other.at_ms > report.at_ms - REPORT_MEMORY_MS
        ]
        kept.append(report)
        self.reports[report.group, report.slot] = tuple(sorted(kept, key=lambda r: (r.application, r.part)))
        self._keep_earlier(report)

    def _keep_earlier(self, report: Report) -> None:
        slot, me = (report.group, report.slot), (report.application, report.part)
        live = {(other.application, other.part) for other in self.reports[slot]}
        later = {(other.application, other.part): other for other in self._later_reports.get(slot, ())}
        earlier = {(other.application, other.part): other for other in self.earlier_reports.get(slot, ())}
        next_one = later.setdefault(me, report)
        earlier.setdefault(me, report)
        if report.at_ms - next_one.at_ms > PACE_MS:
            earlier[me], later[me] = next_one, report
        self._later_reports[slot] = tuple(other for key, other in later.items() if key in live)
        self.earlier_reports[slot] = tuple(other for key, other in earlier.items() if key in live)

    def _take_loss(self, loss: Loss) -> None:
        if loss.link != self._link:
            raise Unreadable(f"it is a loss of link {loss.link!r}")
        self.losses.take(loss)

    def _forget(self, kind: Kind, raw_key: bytes | None) -> bool:
        if kind == "map":
            return self.runs.drop(raw_key)
        try:
            group = decode_key(PlanKey, raw_key).group
        except Unreadable:
            return False  # what cannot be read was never taken in
        return self.plans.pop(group, None) is not None
