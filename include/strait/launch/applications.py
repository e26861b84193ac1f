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
    """It keeps ending: do not submit it before that time, and call a person."""

    because: str
    until_ms: int


Action = Leave | Submit | Replace | GiveUp


def decide(
    wanted: AppSpec | None,
    found: Application | None,
    runs_with: AppSpec | None,
    history: Iterable[Application],
    now_ms: int,
) -> Action:
    """What to do about one task group.

    Args:
        wanted: the spec that it should run with; None where its plan says stopped.
        found: its application as last seen, or None.
        runs_with: the spec that ``found`` was submitted with; None where it cannot be read.
        history: its submissions, as far as they are remembered.
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
    until_ms = held_until_ms(history, now_ms)
    if until_ms and not _asks_for_more(wanted, found, runs_with):
        minutes = RESTART_WINDOW_SECONDS / 60
        return GiveUp(f"submitted {RESTART_LIMIT} times within {minutes:g} minutes, and it exited each time", until_ms)
    return Submit("it ended")


def held_until_ms(history: Iterable[Application], now_ms: int) -> int:
    """When an application that keeps failing is submitted again; 0: at once. It begins to count anew with the window.
    Whoever stops and starts a link does not make it fail. Exits that ask for more cores count apart from failures: some
    follow a growing plan, many a cluster that has no such cores now."""
    window_ms = int(RESTART_WINDOW_SECONDS * 1000)
    newest = sorted(history, key=lambda one: one.submitted_at_ms, reverse=True)
    if not newest or newest[0].state is not State.DEAD:
        return 0
    alike = [one for one in newest if one.state is State.DEAD and _needed_more(one) == _needed_more(newest[0])]
    recent = [one for one in alike if now_ms - one.submitted_at_ms < window_ms]
    return recent[RESTART_LIMIT - 1].submitted_at_ms + window_ms if len(recent) >= RESTART_LIMIT else 0


def _needed_more(one: Application) -> bool:
    return one.exit_code == EXIT_NEEDS_MORE_CORES


def _asks_for_more(wanted: AppSpec, found: Application, runs_with: AppSpec | None) -> bool:
    """Whether the next submission differs from the last in what that lacked."""
    return _needed_more(found) and runs_with is not None and wanted.slots > runs_with.slots


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
