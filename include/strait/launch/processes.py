"""Finding and ending every process of a submission, whoever started it and whatever became of its parents.

Each process of an application carries the folder of its submission in its environment, and its children inherit that.
Unlike a recorded pid the mark cannot come to mean a stranger, it survives parents, sessions and process groups, and it
finds what runs without any record. A zombie has no environment, so it counts as dead, which it is.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil

MARK = "STRAIT_SUBMISSION"


def find(below: Path) -> Mapping[Path, list[psutil.Process]]:
    """Submission folder -> its live processes, for every submission somewhere in the folder ``below``."""
    found: dict[Path, list[psutil.Process]] = defaultdict(list)
    for process in psutil.process_iter():
        mark = _mark(process)
        if mark is not None and mark.is_relative_to(below):
            found[mark].append(process)
    return found


def bears(process: psutil.Process, mark: Path) -> bool:
    """Whether this process lives and belongs to the submission with this folder."""
    return _mark(process) == mark


def end(look: Callable[[], Sequence[psutil.Process]], *, grace_seconds: float) -> Sequence[psutil.Process]:
    """Ask the processes that ``look`` finds to end, then kill what is left. Returns what survived even that.

    The request is repeated, because an application that is just starting cannot hear it yet.
    """
    deadline = time.monotonic() + grace_seconds
    while (left := look()) and time.monotonic() < deadline:
        for process in left:
            _ask(process)
        psutil.wait_procs(left, timeout=min(0.5, max(0.0, deadline - time.monotonic())))
    deadline = time.monotonic() + 5.0
    while (left := look()) and time.monotonic() < deadline:
        for process in left:
            _kill(process)
        psutil.wait_procs(left, timeout=0.5)
    return left


def _mark(process: psutil.Process) -> Path | None:
    try:
        mark = process.environ().get(MARK)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None  # gone or a zombie; or another user's, so not ours
    return Path(mark) if mark else None


def _ask(process: psutil.Process) -> None:
    """SIGTERM, except to Spark's Python workers: they lead a group of their own, and end with their task."""
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
