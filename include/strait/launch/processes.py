"""Find and stop every process of a submission, regardless of its submitter and the state of its parent processes.

Each process of an application carries the path of its submission's directory in its environment, and its children
inherit that. Unlike a recorded pid, this mark never matches a foreign process. It does not depend on parents, sessions
or process groups, and finds running processes without any record. A zombie has no environment, so it is treated as
dead, which it is.
"""

import os
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

from strait.waiting import tries

MARK = "STRAIT_SUBMISSION"


def with_parent(argv: Sequence[str]) -> list[str] | None:
    """Return the command line as one that the kernel kills once the thread that starts it ends (Linux,
    PR_SET_PDEATHSIG); None if this host lacks `setpriv` for that."""
    setpriv = shutil.which("setpriv")
    return None if setpriv is None else [setpriv, "--pdeathsig", "KILL", *argv]


def find(below: Path) -> Mapping[Path, list[psutil.Process]]:
    """Return submission directory -> its live processes, for every submission anywhere in the directory ``below``."""
    found: dict[Path, list[psutil.Process]] = defaultdict(list)
    for process in psutil.process_iter():
        mark = _mark(process)
        if mark is not None and mark.is_relative_to(below):
            found[mark].append(process)
    return found


def bears(process: psutil.Process, mark: Path) -> bool:
    """Return whether this process is alive and belongs to the submission with the directory ``mark``."""
    return _mark(process) == mark


def end(look: Callable[[], Sequence[psutil.Process]], *, grace_seconds: float) -> Sequence[psutil.Process]:
    """Ask the processes that ``look`` finds to end, then kill the remaining ones. Return those that survived even that.

    The request is repeated, because an application that is still starting ignores it.
    """
    deadline = time.monotonic() + grace_seconds
    while (left := look()) and time.monotonic() < deadline:
        for process in left:
            _ask(process)
        psutil.wait_procs(left, timeout=min(0.5, max(0.0, deadline - time.monotonic())))
    for _ in tries(5.0, 0.0):
        left = look()
        if not left:
            break
        for process in left:
            _kill(process)
        psutil.wait_procs(left, timeout=0.5)
    return left


def _mark(process: psutil.Process) -> Path | None:
    try:
        mark = process.environ().get(MARK)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None  # exited or a zombie; or another user's, so not ours
    return Path(mark) if mark else None


def _ask(process: psutil.Process) -> None:
    """Send SIGTERM, except to Spark's Python workers: they have a separate process group, and end with their task."""
    try:
        if os.getpgid(process.pid) == os.getsid(process.pid):
            process.terminate()
    except (psutil.NoSuchProcess, ProcessLookupError):
        return


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return
