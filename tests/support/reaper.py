"""Ends what a run of tests or a benchmark has started, however that run ends: by an error, SIGTERM, or kill -9.

Whatever the run starts inherits a mark in its environment, so orphans and processes in sessions of their own are found,
too. A process without the mark waits until the run has exited, and then ends everything that has it.
"""

import os
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from typing import NoReturn

import psutil

MARK = "STRAIT_TEST_RUN"
_LOOKS = 3
_PAUSE_SECONDS = 0.5  # between two looks, since a process may start another one before it is killed


def leave_nothing() -> None:
    """Call this at the start of a benchmark. SIGTERM then ends it like an error, so that files are removed, too."""
    mark = f"{outer}.{uuid.uuid4().hex}" if (outer := os.environ.get(MARK)) else uuid.uuid4().hex
    os.environ[MARK] = mark
    signal.signal(signal.SIGTERM, _unwind)
    start(mark)


def start(mark: str) -> int:
    """Start the process that ends what has this mark, or one that begins with it and a dot, once the calling process has
    exited; return its pid."""
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    reaper = subprocess.Popen(
        [sys.executable, __file__, str(os.getpid()), mark],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,  # signals to the run's group are not for it
    )
    reaper.returncode = 0  # it outlives this process, which is no reason for a warning
    return reaper.pid


def marked(mark: str) -> Iterator[psutil.Process]:
    """Yield the processes that have the mark."""
    for process in psutil.process_iter():
        try:
            has = f"{process.environ().get(MARK)}.".startswith(f"{mark}.")
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
        if has:
            yield process


def _unwind(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _reap(pid: int, mark: str) -> None:
    try:
        run = os.pidfd_open(pid)
    except ProcessLookupError:
        pass  # it has exited already
    else:
        select.select([run], [], [])
    looks = 0
    while looks < _LOOKS:
        looks += 1
        for process in marked(mark):
            looks = 0
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        time.sleep(_PAUSE_SECONDS)


if __name__ == "__main__":
    _reap(int(sys.argv[1]), sys.argv[2])
