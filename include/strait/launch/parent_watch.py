"""Tie an application to another process, so that it ends once that process has exited, for any reason.

`strait run` in the foreground guarantees that no application continues after it has exited, even if kill -9 ended it.
"""

import os
from collections.abc import Callable

import psutil

_TIED_TO = "STRAIT_TIED_TO"


def tied_environment(pid: int | None) -> dict[str, str]:
    """Return the environment that ties an application to the process ``pid``; None does not tie it."""
    return {} if pid is None else {_TIED_TO: str(pid)}


def tie_broken() -> Callable[[], bool]:
    """Return a function for the application to poll: whether the process that it is tied to has exited.

    If the process exited earlier, this raises no error, and the function returns True from the start.
    """
    tie = os.environ.get(_TIED_TO)
    return exited(int(tie)) if tie is not None else lambda: False


def parent_exited(pid: int) -> Callable[[], bool]:
    """Return a function for a process to poll: whether its parent, which had this pid, has exited. If the parent exited
    earlier, another process is the parent now, and the function returns True from the start."""
    gone = exited(pid)
    return gone if os.getppid() == pid else lambda: True


def exited(pid: int) -> Callable[[], bool]:
    """Return a function for polling: whether the process that has this pid now has exited."""
    try:
        process = psutil.Process(pid)  # remembers its creation time, so a reused pid does not match
    except psutil.NoSuchProcess:
        return lambda: True
    return lambda: not process.is_running() or _is_zombie(process)


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True
