"""The state of one link as its state topics tell it, record after record. Pure: no Kafka, no clock.

A record that cannot be read changes nothing: the last good value under its key stays in force, and the trouble is kept
until a good record or a tombstone comes under the same key.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from strait.errors import StateError
from strait.state.codec import (
    Key,
    PlanKey,
    RunKey,
    Unreadable,
    decode,
    decode_key,
    kind_of_report,
    run_key,
)
from strait.state.schema import GroupSyncReport, Loss, OffsetMapping, Plan, Report

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


class RunsByPartition(Mapping[tuple[str, int], tuple[OffsetMapping, ...]]):
    """(source topic, partition) -> its runs, by sequence_base. Sorted when asked for: there can be many thousands."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, int], dict[RunKey, OffsetMapping]] = {}
        self._sorted: dict[tuple[str, int], tuple[OffsetMapping, ...]] = {}

    def put(self, run: OffsetMapping) -> None:
        where = run.topic, run.partition
        self._kept.setdefault(where, {})[run_key(run)] = run
        self._sorted.pop(where, None)

    def drop(self, key: RunKey) -> bool:
        """Forget one run; return whether it was there."""
        where = key.topic, key.partition
        kept = self._kept.get(where, {})
        found = kept.pop(key, None) is not None
        self._sorted.pop(where, None)
        if not kept:
            self._kept.pop(where, None)
        return found

    def __getitem__(self, where: tuple[str, int]) -> tuple[OffsetMapping, ...]:
        known = self._sorted.get(where)
        if known is None:
            known = tuple(sorted(self._kept[where].values(), key=lambda run: run.sequence_base))
            self._sorted[where] = known
        return known

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)


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
        losses: the loss ledger, in the order of its writing; the same loss told by several slots is there once.
    """

    def __init__(self, link: str) -> None:
        self._link = link
        self.plans: dict[str, Plan] = {}
        self.runs = RunsByPartition()
        self.reports: dict[tuple[str, int], tuple[Report, ...]] = {}
        self.earlier_reports: dict[tuple[str, int], tuple[Report, ...]] = {}
        self.group_sync: GroupSyncReport | None = None
        self._later_reports: dict[tuple[str, int], tuple[Report, ...]] = {}  # what takes their place next
        self._losses: dict[Loss, Loss] = {}  # what was lost, whenever it was told -> as it was told first
        self._troubles: dict[Kind, dict[bytes | None, StateError]] = defaultdict(dict)

    @property
    def losses(self) -> tuple[Loss, ...]:
        return tuple(self._losses.values())

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
                self._take_run(decode(OffsetMapping, raw_key, raw_value))
            elif kind == "losses":
                self._take_loss(decode(Loss, raw_key, raw_value))
            elif kind_of_report(raw_key) is GroupSyncReport:
                self.group_sync = decode(GroupSyncReport, raw_key, raw_value)
            else:
                self._take_report(decode(Report, raw_key, raw_value))
        except Unreadable as error:
            self._troubles[kind][raw_key] = StateError(
                f"link {self._link}: reading its state: the record at {place} cannot be read: {error}",
                hint="the last good state stays active; upgrade Strait if a newer one wrote it, "
                "else write a good record or a tombstone under the same key",
            )
        return True

    def _take_plan(self, plan: Plan) -> None:
        if plan.link != self._link:
            raise Unreadable(f"it is a plan of link {plan.link!r}")
        self.plans[plan.group] = plan

    def _take_run(self, run: OffsetMapping) -> None:
        self.runs.put(run)

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
        self._losses.setdefault(loss.model_copy(update={"at_ms": 0}), loss)

    def _forget(self, kind: Kind, raw_key: bytes | None) -> bool:
        try:
            key: Key = decode_key(PlanKey if kind == "plan" else RunKey, raw_key)
        except Unreadable:
            return False  # what cannot be read was never taken in
        if isinstance(key, PlanKey):
            return self.plans.pop(key.group, None) is not None
        if isinstance(key, RunKey):
            return self.runs.drop(key)
        return False
