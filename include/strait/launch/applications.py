"""Decides what becomes of the application of a task group: leave, submit, submit anew, or let a person look. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from strait.config.app_spec import AppSpec
from strait.launch.base import EXIT_NEEDS_MORE_CORES, Application, State

RESTART_LIMIT = 5
RESTART_WINDOW_SECONDS = 600.0
"""So many submissions within so long: then restarting does not help, and a person must look. It is tried again
later."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Nothing is to be done."""

    because: str


@dataclass(frozen=True, slots=True)
class Submit:
    """It does not run and should."""

    because: str


@dataclass(frozen=True, slots=True)
class Replace:
    """It runs, but not with what it should: end it, then submit it."""

    because: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It keeps ending: do not submit it now, and call a person."""

    because: str


Action = Leave | Submit | Replace | GiveUp


def decide(
    wanted: AppSpec | None,
    found: Application | None,
    runs_with: AppSpec | None,
    submitted_ms: Iterable[int],
    now_ms: int,
) -> Action:
    """What to do about one task group.

    Args:
        wanted: the spec that it should run with; None where its plan says stopped.
        found: its application as last seen, or None.
        runs_with: the spec that ``found`` was submitted with; None where it cannot be read.
        submitted_ms: when it was submitted, as far as it is remembered.
    """
    if wanted is None:
        return Leave("its plan says stopped")
    if found is None:
        return Submit("it was never submitted")
    if found.state is State.UNKNOWN:
        return Leave("its state cannot be seen now")
    if found.state.alive:
        changed = _changed(wanted, runs_with)
        return Replace(f"other {', '.join(changed)}") if changed else Leave(f"it is {found.state}")
    # One that only asked for more cores did not fail.
    recent = [at_ms for at_ms in submitted_ms if now_ms - at_ms < RESTART_WINDOW_SECONDS * 1000]
    if len(recent) >= RESTART_LIMIT and found.exit_code != EXIT_NEEDS_MORE_CORES:
        minutes = RESTART_WINDOW_SECONDS / 60
        return GiveUp(f"submitted {len(recent)} times within {minutes:g} minutes, and it exited each time")
    return Submit("it ended")


def orphans(found: Sequence[Application], known: Collection[str]) -> list[Application]:
    """What runs and belongs to no link: to be ended. ``known``: the application names of all links."""
    return [application for application in found if application.state.alive and application.name not in known]


def _changed(wanted: AppSpec, runs_with: AppSpec | None) -> list[str]:
    """The settings for which a restart is needed. Values stay unsaid: some are secrets."""
    if runs_with is None:
        return ["version of its spec"]
    changed = [name for name in AppSpec.model_fields if getattr(wanted, name) != getattr(runs_with, name)]
    if wanted.slots < runs_with.slots:
        changed.remove("slots")  # it has the cores, and follows the plan by itself
    return changed
