"""A process that outlives the one that started it, and that any later process can find and stop.

It leads a separate session. A record file holds its pid and its start time in clock ticks: a pid alone may belong to
another process by now. Processes that it leaves running are found by the session, which children keep when their parent
dies.
"""

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil

from strait.errors import SetupError
from strait.launch.processes import with_parent
from strait.waiting import tries


class Detached:
    """One such process. ``record`` is the file that identifies it; there is none before the start and after the
    stop."""

    def __init__(self, record: Path) -> None:
        self.record = record

    def start(self, argv: Sequence[str], *, environment: Mapping[str, str], log: Path, directory: Path) -> None:
        """Start the process, with its output appended to ``log``. It must not be running."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                argv,
                env=dict(environment),
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # A shell's background job ignores SIGINT, and children inherit that.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )
        started = _start_ticks(process.pid)
        if started is None:
            raise SetupError(f"{argv[0]}: ended at once", hint=f"read {log}")
        partial = self.record.with_suffix(".partial")
        partial.write_text(json.dumps({"pid": process.pid, "start_ticks": started}), encoding="utf-8")
        partial.replace(self.record)

    @property
    def pid(self) -> int | None:
        """The pid while the process runs, else None. A zombie does not run."""
        recorded = self._recorded()
        return recorded[0] if recorded and _start_ticks(recorded[0]) == recorded[1] else None

    def members(self) -> list[psutil.Process]:
        """Return every live process of its session: the process itself, and those left by it or its dead children."""
        recorded = self._recorded()
        if recorded is None or _start_ticks(recorded[0]) not in (recorded[1], None):
            return []  # another process has the pid, which is possible only if nothing of the session is left
        return [process for process in psutil.process_iter() if _in_session(process, recorded[0])]

    def stop(self, signal_number: signal.Signals, *, grace_seconds: float) -> None:
        """Send the process a signal, wait, then end all that is left of its session. No error if it does not run."""
        if (pid := self.pid) is not None:
            os.kill(pid, signal_number)
            for _ in tries(grace_seconds, 0.05):
                if self.pid is None:
                    break
        for last_signal in (signal.SIGTERM, signal.SIGKILL):
            left = self.members()
            for process in left:
                _signal(process, last_signal)
            psutil.wait_procs(left, timeout=5)
        if pid is not None:
            with suppress(ChildProcessError):  # it was started by another process: not ours to reap
                os.waitpid(pid, os.WNOHANG)
        self.record.unlink(missing_ok=True)

    def _recorded(self) -> tuple[int, int] | None:
        try:
            record = json.loads(self.record.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        return int(record["pid"]), int(record["start_ticks"])


def _start_ticks(pid: int) -> int | None:
    """Return the start time of a process in clock ticks since boot; None if there is none or it is a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the name before it may contain any character
    state, threads, started = fields[0], int(fields[17]), int(fields[19])
    # A process is a zombie once its first thread is; while others are ending, it still holds its ports and files.
    return None if state in "ZX" and threads <= 1 else started


def _in_session(process: psutil.Process, session: int) -> bool:
    try:
        return os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, psutil.NoSuchProcess):
        return False


def _signal(process: psutil.Process, signal_number: signal.Signals) -> None:
    try:
        process.send_signal(signal_number)
    except psutil.NoSuchProcess:
        return  # it has exited in the meantime


# To the kernel the parent is the thread that started the child. This one lives as long as the process does, so that
# it does not matter which thread calls `start_leashed`.
_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="starter")


def start_leashed(
    process: Detached, argv: Sequence[str], *, environment: Mapping[str, str], log: Path, directory: Path
) -> None:
    """Start a process as ``process.start`` does; it dies with this process."""
    leashed = with_parent(argv)
    if leashed is None:
        raise SetupError(
            f"{argv[0]}: starting it: there is no `setpriv` on PATH", hint="install util-linux 2.33 or later"
        )
    _STARTER.submit(process.start, leashed, environment=environment, log=log, directory=directory).result()
