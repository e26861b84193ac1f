"""Applications and their known submissions, as plain data."""

from collections.abc import Iterable, Iterator
from typing import Any

from strait.launch.applications import held_until_ms
from strait.launch.base import Application, Launcher


def overview(launcher: Launcher, names: Iterable[str], now_ms: int) -> Iterator[dict[str, Any]]:
    """Yield each of these applications that was ever submitted: its submissions, newest first, with the causes of their
    ends, and ``not_before_ms``: when it may be submitted again if it keeps failing, else None. Times are in ms since
    1970.

    Raises:
        LaunchError, SetupError: the cluster that runs them cannot be queried.
    """
    for name in names:
        if history := launcher.history(name):
            submissions = [_submission(launcher, one) for one in history]
            yield {"name": name, "not_before_ms": held_until_ms(history, now_ms) or None, "submissions": submissions}


def _submission(launcher: Launcher, one: Application) -> dict[str, Any]:
    return {
        "id": one.id,
        "state": str(one.state),
        "submitted_at_ms": one.submitted_at_ms,
        "exit_code": one.exit_code,
        "cause": "" if one.state.alive else launcher.cause(one),
        "log": one.log,
    }
