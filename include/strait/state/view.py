"""The state of one link as its state topics tell it, record after record. Pure: no Kafka, no clock.

A record that cannot be read changes nothing: the last good value under its key stays in force, and the trouble is kept
until a good record or a tombstone comes under the same key.
"""

from collections import defaultdict
from typing import Literal, NamedTuple

from strait.errors import StateError
from strait.state.codec import Key, PlanKey, RunKey, Unreadable, decode, decode_key
from strait.state.schema import Plan, Report, Run

Kind = Literal["plan", "map", "reports"]

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
    """Plans, runs and reports of one link.

    Attributes:
        plans: group -> its plan in force.
        runs: (source topic, partition) -> its runs, by sequence_base.
        reports: (group, slot) -> the newest report of every part of every application that runs this slot; more than
            one application is allowed, and harmless.
    """

    def __init__(self, link: str) -> None:
        self._link = link
        self.plans: dict[str, Plan] = {}
        self.runs: dict[tuple[str, int], tuple[Run, ...]] = {}
        self.reports: dict[tuple[str, int], tuple[Report, ...]] = {}
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
                self._take_run(decode(Run, raw_key, raw_value))
            else:
                self._take_report(decode(Report, raw_key, raw_value))
        except Unreadable as error:
            self._troubles[kind][raw_key] = StateError(
                f"link {self._link}: reading its state: the record at {place} cannot be read: {error}",
                hint="the last good state stays in force; upgrade Strait if a newer one wrote it, "
                "else write a good record or a tombstone under the same key",
            )
        return True

    def _take_plan(self, plan: Plan) -> None:
        if plan.link != self._link:
            raise Unreadable(f"it is a plan of link {plan.link!r}")
        self.plans[plan.group] = plan

    def _take_run(self, run: Run) -> None:
        others = [r for r in self.runs.get((run.topic, run.partition), ()) if r.sequence_base != run.sequence_base]
        self._keep(run.topic, run.partition, [*others, run])

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

    def _forget(self, kind: Kind, raw_key: bytes | None) -> bool:
        try:
            key: Key = decode_key(PlanKey if kind == "plan" else RunKey, raw_key)
        except Unreadable:
            return False  # what cannot be read was never taken in
        if isinstance(key, PlanKey):
            return self.plans.pop(key.group, None) is not None
        if isinstance(key, RunKey):
            before = self.runs.get((key.topic, key.partition), ())
            after = [run for run in before if run.sequence_base != key.sequence_base]
            self._keep(key.topic, key.partition, after)
            return len(after) != len(before)
        return False

    def _keep(self, topic: str, partition: int, runs: list[Run]) -> None:
        if runs:
            self.runs[topic, partition] = tuple(sorted(runs, key=lambda run: run.sequence_base))
        else:
            self.runs.pop((topic, partition), None)
