"""What processes cost: CPU, memory, time."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from strait.errors import MeasurementError

_COMMAND_SECONDS = 900.0
STRAIT = (sys.executable, "-c", "from strait.cli.main import main; main()")


class Cost(NamedTuple):
    """Of a process that has ended: ``code`` is what it exited with, ``output`` all that it wrote."""

    code: int
    seconds: float
    cpu_seconds: float
    memory_mb: float
    output: str

    def check(self) -> "Cost":
        """Raises MeasurementError: it failed."""
        if self.code:
            raise MeasurementError(f"exited with {self.code}: {self.output[-2000:]}")
        return self


def strait(folder: Path, *arguments: str) -> Cost:
    """Run `strait` as a user does. ``folder``: its home."""
    return run([*STRAIT, *arguments], folder)


def module(name: str, folder: Path, *arguments: str) -> Cost:
    """Run a module of this benchmark in a process of its own."""
    return run([sys.executable, "-m", name, *arguments], folder)


def run(command: Sequence[str], folder: Path) -> Cost:
    """Run a command to its end. Its children count where it waited for them."""
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "STRAIT_HOME": str(folder / "home"),
    }
    log = folder / f"command-{time.monotonic_ns()}.log"
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)
    deadline, most_mb = began + _COMMAND_SECONDS, 0.0
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        most_mb = _most_memory_mb(process.pid) or most_mb
        if time.monotonic() > deadline:
            process.kill()
        time.sleep(0.005)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - began
    said = log.read_text(encoding="utf-8", errors="replace")
    return Cost(process.returncode, seconds, usage.ru_utime + usage.ru_stime, most_mb, said)


def _most_memory_mb(pid: int) -> float:
    """What it has held at most so far; 0 if it has ended. `ru_maxrss` would count this process too, before the exec."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
    return int(found[1]) * 1024 / 1e6 if found else 0.0


def cpu_seconds(process: psutil.Process) -> float:
    """That it has used so far."""
    used = process.cpu_times()
    return float(used.user + used.system)


def memory_mb(process: psutil.Process) -> float:
    """Resident."""
    return float(process.memory_info().rss) / 1e6


def share_of_core(process: psutil.Process, seconds: float) -> float:
    """Percent of a core that it uses from now on for so long."""
    before, began = cpu_seconds(process), time.monotonic()
    time.sleep(seconds)
    return 100 * (cpu_seconds(process) - before) / (time.monotonic() - began)
