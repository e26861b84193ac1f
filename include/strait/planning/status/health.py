"""Checks whether a task group replicates as it should: its application is alive, and every slot reports. Pure.

The time of a slot's last report is taken from the listener's clock, so that the clocks of other machines do not matter.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from strait.launch.base import Application, State
from strait.reasons import Reason
from strait.state.schema import Plan
from strait.text import duration

SILENT_SECONDS = 30.0
"""A slot reports once per second; the longest pause in normal operation is Spark restarting a failed slot. On an
overloaded machine both may take long, and restarting everything adds to the load."""

STARTING_SECONDS = 90.0
"""Maximum time that an application takes from its submission, and from when it runs, to its first report."""

CLUSTER_SILENT_SECONDS = 240.0


class Patience(NamedTuple):
    """Time to wait before restarting an application: if a slot does not report, and if a submitted one does not run."""

    silent_seconds: float
    waiting_seconds: float


ON_THIS_HOST = Patience(SILENT_SECONDS, STARTING_SECONDS)
IN_CLUSTER = Patience(CLUSTER_SILENT_SECONDS, 1200.0)
"""For a driver in a cluster. The cluster restarts it automatically, within minutes if a host was lost, and may keep it
waiting for capacity or an image."""

START_WITHIN_SECONDS = 120.0
CLUSTER_START_WITHIN_SECONDS = 420.0
"""Maximum time that a run waits for the first reports after a submission. The watch continues to check afterwards."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a task group does not replicate as it should, as one human-readable line. ``application``: its name, set by
    the observer."""

    group: str
    reason: Reason
    detail: str
    application: str = ""

    def __str__(self) -> str:
        return f"group {self.group}: {self.reason}: {self.detail}"


class Hearing:
    """Time of each slot's last report. All times are seconds on one clock of the listener."""

    def __init__(self, started_at: float) -> None:
        self._started_at = started_at
        self._newest_ms: dict[tuple[str, int], int] = {}
        self._heard_at: dict[tuple[str, int], float] = {}

    def listen(self, heard: Mapping[tuple[str, int], int], now: float) -> None:
        """Record when each (task group, slot) has last reported, in ms since 1970 by the clock of the slot's host."""
        for slot, newest_ms in heard.items():
            if newest_ms > self._newest_ms.get(slot, -1):
                self._newest_ms[slot] = newest_ms
                self._heard_at[slot] = now

    def silent(self, plan: Plan, now: float, patience: Patience = ON_THIS_HOST) -> tuple[int, ...]:
        """Return the slots of the plan that have not reported for longer than ``patience`` allows, in order."""
        most = patience.silent_seconds
        return tuple(slot for slot in range(plan.slots) if now - self._last(plan.group, slot) > most)

    def _last(self, group: str, slot: int) -> float:
        return self._heard_at.get((group, slot), self._started_at)


@dataclass(frozen=True, slots=True)
class Start:
    """How the start of an application ended, as one line. ``exited``: it failed since the application exited, so it will be
    submitted again."""

    succeeded: bool
    text: str
    exited: bool = False


def start_of(
    plan: Plan | None,
    application: Application | None,
    heard: Collection[int],
    waited_seconds: float,
    within_seconds: float,
    *,
    standby: bool = False,
) -> Start | None:
    """Return how the start of a task group's application ended; None: it is still starting.

    Args:
        application: as last seen.
        heard: slots that have reported since it was submitted.
        waited_seconds: time since the wait began.
        standby: it runs, and reports only once it replicates.
    """
    if plan is None or plan.stopped:
        return Start(True, "its plan is stopped, so no application is to run")
    if application is None:
        return Start(False, f"group {plan.group}: its application was never submitted")
    name = f"application {application.name}"
    if application.state is not State.UNKNOWN and not application.state.alive:
        return Start(False, f"{name}: it exited before each of its slots had reported", exited=True)
    missing = [slot for slot in range(plan.slots) if slot not in heard]
    if standby and application.state is State.RUNNING:
        return Start(True, f"{name}: it runs, and waits as a standby")
    if not missing and not standby:
        return Start(True, f"{name}: each of its slots reports ({plan.slots})")
    if waited_seconds < within_seconds:
        return None
    slots = "" if standby else f", no report from slots {', '.join(map(str, missing))}"
    return Start(False, f"{name}: {application.state} for {waited_seconds:.0f} s{slots}")


def trouble_of(
    plan: Plan,
    application: Application | None,
    silent: Sequence[int],
    now_ms: int,
    patience: Patience = ON_THIS_HOST,
    *,
    running_seconds: float = inf,
) -> Trouble | None:
    """Return the most severe problem of a task group; None if there is none.

    An application that was never submitted, or whose launcher does not respond, is not a problem: the monitor submits
    the first, and nothing is known about the second.

    Args:
        running_seconds: time since the application was seen to start; infinite if that was not observed.
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
        detail = f"no report for {duration(patience.silent_seconds)} or longer from slots: {slots}"
        return Trouble(plan.group, Reason.SLOT_SILENT, detail)
    return None
