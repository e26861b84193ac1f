"""Copies while Spark starts: a process for each slot, beside `spark-submit`, that runs the slot until Spark does.

Spark needs seconds until its first task runs, and copying needs none of its work. Two instances of a slot are harmless
(ADR 2), so the hand-over needs no certainty: Spark's task asks the process to end, and waits for it a while, since two
instances that copy at the same time cost each other time.

    <submission>/head-start/  <slot>.lock  held by the process of the slot
                              <slot>.over  exists: Spark runs the slot

The launcher creates the directory, if the slots run on its own host.
"""

import contextlib
import fcntl
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from strait.config.app_spec import read_spec
from strait.errors import ConfigError, StraitError
from strait.launch.parent_watch import parent_exited, tie_broken
from strait.launch.submission import Submission
from strait.waiting import tries

log = logging.getLogger(__name__)

_HAND_OVER_SECONDS = 5.0
"""Longer than a slot needs to send the batches that it has fetched."""
_POLL_SECONDS = 0.01
_RETRY_SECONDS = 0.5


def application_of(spec_path: Path) -> str:
    """Return the application ID in the reports and ledger rows of the head start of this spec's submission; "" if there
    is none."""
    submission = Submission(spec_path.parent)
    return f"head-start-{submission.submitted_at_ms}" if submission.head_start.is_dir() else ""


def take_over(spec_path: Path, slot: int) -> None:
    """End the head start of a slot, which Spark runs from now on. Does nothing if there is none."""
    folder = Submission(spec_path.parent).head_start
    if not folder.is_dir():
        return
    _over(folder, slot).touch()
    with _lock(folder, slot).open("ab") as file:
        for _ in tries(_HAND_OVER_SECONDS, _POLL_SECONDS):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
    log.warning("slot %d: its head start has not ended within %g s", slot, _HAND_OVER_SECONDS)


def run(spec_path: Path, parent_pid: int) -> None:
    """Copy until Spark runs every slot, or the process that started this one, of ``parent_pid``, has ended. It may have
    ended already, if Spark failed immediately."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    try:
        spec = read_spec(spec_path)
    except ConfigError:
        return  # the driver ends for the same cause, and reports it
    shell_gone, tied_away = parent_exited(parent_pid), tie_broken()

    def is_over() -> bool:
        return asked.is_set() or shell_gone() or tied_away()

    from strait.engine import task  # before the forks, which then share it

    def copy(slot: int) -> None:
        folder, application = Submission(spec_path.parent).head_start, application_of(spec_path)
        taken_over = _over(folder, slot)

        def ends() -> bool:
            return taken_over.exists() or is_over()

        with _lock(folder, slot).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            while not ends():
                try:
                    task.run(spec, spec_path, slot, application, ends)
                except StraitError as error:
                    log.info("slot %d, before Spark runs it: %s", slot, error)
                    time.sleep(_RETRY_SECONDS)
                else:
                    return

    others = [_forked(copy, slot) for slot in range(1, spec.slots)]
    copy(0)
    for pid in others:
        os.waitpid(pid, 0)


def _forked(copy: Callable[[int], None], slot: int) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            copy(slot)
            code = 0
        finally:
            os._exit(code)
    return pid


def _lock(folder: Path, slot: int) -> Path:
    return folder / f"{slot}.lock"


def _over(folder: Path, slot: int) -> Path:
    return folder / f"{slot}.over"


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
