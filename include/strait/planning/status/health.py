"""Decides whether a task group copies as it should: is its application alive, is every slot heard? Pure.

When a slot was last heard is told by the listener's clock, so that the clocks of other machines do not matter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from strait.launch.base import Application, State
from strait.reasons import Reason
from strait.state.schema import Plan, Report

SILENT_SECONDS = 30.0
"""A slot reports once a second; the longest pause in good health is a failed slot being started again by Spark. On a
machine that has far too much to do both may take long, and starting everything anew gives it more."""

STARTING_SECONDS = 90.0
"""So long an application may take from its submission, and once it runs, to its first report."""

CLUSTER_SILENT_SECONDS = 240.0


class Patience(NamedTuple):
    """What is waited for before an application is started anew: a silent slot, and the start of one that is submitted."""

    silent_seconds: float
    waiting_seconds: float


ON_THIS_HOST = Patience(SILENT_SECONDS, STARTING_SECONDS)
IN_CLUSTER = Patience(CLUSTER_SILENT_SECONDS, 1200.0)
"""Of a driver in a cluster, which starts it again by itself, within minutes where a host was lost, and lets it wait for
room or an image."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a task group does not copy as it should, in one line for people."""

    group: str
    reason: Reason
    detail: str

    def __str__(self) -> str:
        return f"group {self.group}: {self.reason}: {self.detail}"


class Hearing:
    """When each slot was last heard. All times are seconds on one clock of the listener."""

    def __init__(self, started_at: float) -> None:
        self._started_at = started_at
        self._newest_ms: dict[tuple[str, int], int] = {}
        self._heard_at: dict[tuple[str, int], float] = {}

    def listen(self, reports: Mapping[tuple[str, int], Sequence[Report]], now: float) -> None:
        """Take in the newest reports by (group, slot)."""
        for slot, parts in reports.items():
            newest_ms = max((report.at_ms for report in parts), default=-1)
            if newest_ms > self._newest_ms.get(slot, -1):
                self._newest_ms[slot] = newest_ms
                self._heard_at[slot] = now

    def silent(self, plan: Plan, now: float, patience: Patience = ON_THIS_HOST) -> tuple[int, ...]:
        """The slots of the plan that have been silent for too long, in order."""
        most = patience.silent_seconds
        return tuple(slot for slot in range(plan.slots) if now - self._last(plan.group, slot) > most)

    def _last(self, group: str, slot: int) -> float:
        return self._heard_at.get((group, slot), self._started_at)


def trouble_of(
    plan: Plan,
    application: Application | None,
    silent: Sequence[int],
    now_ms: int,
    patience: Patience = ON_THIS_HOST,
    *,
    running_seconds: float = inf,
) -> Trouble | None:
    """The one thing that is wrong with a task group, the worse first; None when nothing is.

    An application that was never submitted, or whose launcher does not answer, is no trouble: the first is the
    monitor's to submit, and about the second nothing is known.

    Args:
        running_seconds: since it was seen to start; infinite where that was not seen.
    """
    if plan.stopped or application is None or application.state is State.UNKNOWN:
        return None
    if not application.state.alive:
        ended = "" if application.exit_code is None else f" with exit code {application.exit_code}"
        return Trouble(plan.group, Reason.APPLICATION_DEAD, f"application {application.id} ended{ended}")
    submitted_seconds = (now_ms - application.submitted_at_ms) / 1000
    if application.state is State.SUBMITTED:
        starting = submitted_seconds < patience.waiting_seconds
    else:
        starting = min(submitted_seconds, running_seconds) < STARTING_SECONDS
    if silent and not starting:
        slots = ", ".join(map(str, silent))
        detail = f"no report for {patience.silent_seconds:g} s from slots: {slots}"
        return Trouble(plan.group, Reason.SLOT_SILENT, detail)
    return None
