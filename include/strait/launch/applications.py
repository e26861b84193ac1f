"""Choose the action for the application of a task group or a pool: leave, update, submit, replace, or hold it for an operator. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from strait.config.app_spec import AppSpec, Spec
from strait.launch.base import EXIT_NEEDS_MORE_CORES, Application, State
from strait.text import plural

RESTART_LIMIT = 5
RESTART_WINDOW_SECONDS = 600.0
"""After this many submissions that failed within this window, restarting does not help and an operator must
investigate. The application is submitted again later."""


@dataclass(frozen=True, slots=True)
class Leave:
    """No action is needed."""

    because: str


@dataclass(frozen=True, slots=True)
class Submit:
    """The application does not run and should."""

    because: str


@dataclass(frozen=True, slots=True)
class Update:
    """The application of a pool runs, and its members or their placement have changed: it follows without a restart."""

    because: str


@dataclass(frozen=True, slots=True)
class Replace:
    """The application runs with an outdated spec: stop it, then submit it."""

    because: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The application exits repeatedly: do not submit it before ``until_ms``, and alert an operator."""

    because: str
    until_ms: int


_FOLLOWED = ("members", "placement")
"""Settings of a pool that its application follows while it runs; its loads are notes for the next placement."""

Action = Leave | Submit | Update | Replace | GiveUp

DYING_TIMES = 3
DYING_WINDOW_SECONDS = 3600.0
"""An application that exits this often within this time does not work, even if it is submitted again each time."""


def decide(
    wanted: Spec | None,
    found: Application | None,
    runs_with: Spec | None,
    history: Iterable[Application],
    now_ms: int,
) -> Action:
    """Choose the action for one task group.

    Args:
        wanted: the spec that the application should run with; None if the plan is stopped.
        found: the application as last seen, or None.
        runs_with: the spec that ``found`` was submitted with; None if it cannot be read.
        history: the known submissions of the application.
    """
    if wanted is None:
        return Leave("its plan says stopped")
    if found is None:
        return Submit("it was never submitted")
    if found.state is State.UNKNOWN:
        return Leave("its state cannot be seen now")
    if found.state.alive:
        if changed := _changed(wanted, runs_with):
            return Replace(f"other {', '.join(changed)}")
        followed = [name for name in _FOLLOWED if getattr(wanted, name, ()) != getattr(runs_with, name, ())]
        return Update(f"other {', '.join(followed)}") if followed else Leave(f"it is {found.state}")
    until_ms = held_until_ms(history, now_ms)
    if until_ms and not _asks_for_more(wanted, found, runs_with):
        minutes = RESTART_WINDOW_SECONDS / 60
        return GiveUp(
            f"submitted {plural(RESTART_LIMIT, 'time')} within {minutes:g} minutes, and it exited each time", until_ms
        )
    return Submit("it ended")


def held_until_ms(history: Iterable[Application], now_ms: int) -> int:
    """Return when an application that keeps failing may be submitted again, in ms since 1970; 0: immediately.

    Only submissions within the window are counted; one with a time in the future is not, since its time is from a clock
    that was ahead, and would hold the application until then. Stopping and starting a link is not a failure. Exits that request
    more cores are counted separately from failures: some follow a growing plan, many mean that the cluster does not
    have these cores now.
    """
    window_ms = int(RESTART_WINDOW_SECONDS * 1000)
    newest = sorted(history, key=lambda one: one.submitted_at_ms, reverse=True)
    if not newest or newest[0].state is not State.DEAD:
        return 0
    alike = [one for one in newest if one.state is State.DEAD and _needed_more(one) == _needed_more(newest[0])]
    recent = [one for one in alike if 0 <= now_ms - one.submitted_at_ms < window_ms]
    return recent[RESTART_LIMIT - 1].submitted_at_ms + window_ms if len(recent) >= RESTART_LIMIT else 0


def dying(history: Iterable[Application], now_ms: int) -> Sequence[Application]:
    """Return the submissions of the last hour that failed, newest first, if they are too many; else nothing. Submissions
    that only requested more cores are not counted."""
    since_ms = now_ms - int(DYING_WINDOW_SECONDS * 1000)
    found = [one for one in history if one.state is State.DEAD and one.submitted_at_ms >= since_ms]
    failed = sorted((one for one in found if not _needed_more(one)), key=lambda one: one.submitted_at_ms, reverse=True)
    return failed if len(failed) >= DYING_TIMES else ()


def _needed_more(one: Application) -> bool:
    return one.exit_code == EXIT_NEEDS_MORE_CORES


def _asks_for_more(wanted: Spec, found: Application, runs_with: Spec | None) -> bool:
    """Return whether the last submission lacked cores and the next one requests more."""
    return _needed_more(found) and runs_with is not None and wanted.slots > runs_with.slots


def orphans(found: Sequence[Application], known: Collection[str]) -> list[Application]:
    """Return the live applications that belong to no link and must be stopped. ``known``: the application names of all
    links."""
    return [application for application in found if application.state.alive and application.name not in known]


def _changed(wanted: Spec, runs_with: Spec | None) -> list[str]:
    """Return the names of the settings that require a restart. Values are omitted: some are secrets."""
    if runs_with is None:
        return ["version of its spec"]
    if type(wanted) is not type(runs_with):
        return ["kind of application"]
    if isinstance(wanted, AppSpec) and isinstance(runs_with, AppSpec):
        wanted, runs_with = wanted.without_keys(), runs_with.without_keys()
    fields = type(wanted).model_fields.keys() - {*_FOLLOWED, "loads"}
    changed = sorted(name for name in fields if getattr(wanted, name) != getattr(runs_with, name))
    if wanted.slots < runs_with.slots:
        changed.remove("slots")  # it has the cores, and follows the plan without a restart
    return changed
