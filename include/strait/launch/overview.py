"""What is known of applications and their submissions, as plain data."""

from collections.abc import Iterable, Iterator
from typing import Any

from strait.launch.applications import held_until_ms
from strait.launch.base import Application, Launcher


def overview(launcher: Launcher, names: Iterable[str], now_ms: int) -> Iterator[dict[str, Any]]:
    """Of each of these applications that was ever submitted: its submissions, the newest first, with the causes of their
    ends, and when it is submitted again if it keeps ending (``not_before_ms``, else None).

    Raises:
        LaunchError, SetupError: who runs them cannot be asked.
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
