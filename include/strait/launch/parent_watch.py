"""Tying an application to another process, so that it ends when that one is gone, however it went.

`strait run` in the foreground promises that nothing goes on once it has ended, and kill -9 must not break that.
"""

import os
from collections.abc import Callable

import psutil

_TIED_TO = "STRAIT_TIED_TO"


def tied_environment(pid: int | None) -> dict[str, str]:
    """What ties an application that is started with this environment to the process ``pid``; None does not tie it."""
    return {} if pid is None else {_TIED_TO: str(pid)}


def tie_broken() -> Callable[[], bool]:
    """A question for the application to ask again and again: is the process gone that it is tied to?

    Raises nothing where it was gone before; the answer is then yes from the start.
    """
    tie = os.environ.get(_TIED_TO)
    if tie is None:
        return lambda: False
    try:
        process = psutil.Process(int(tie))  # remembers when it was created, so a later owner of the pid is a stranger
    except psutil.NoSuchProcess:
        return lambda: True
    return lambda: not process.is_running() or _is_zombie(process)


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
