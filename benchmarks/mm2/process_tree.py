"""The processes of a measurement: CPU time and memory of a process and everything that it starts, however deep, detached or short-lived.

Members are known by an environment variable, which every descendant inherits: a child that leads a session of its own
or lost its parent is still counted.
"""

import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess

import psutil

MARK = "STRAIT_BENCH_MEMBER"


@dataclass(slots=True)
class _Member:
    process: psutil.Process
    parent: int
    command: str
    cpu_seconds: float = 0.0  # its own, and that of children it has waited for
    peak_pss_bytes: int = 0


class ProcessTree:
    """Start the root with ``environment()``; then ask as often as needed."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(8)
        self._alive: dict[int, _Member] = {}
        self._strangers: set[int] = set()
        self._ended: list[_Member] = []
        self._lost_cpu_seconds = 0.0
        self.peak_pss_bytes = 0

    def environment(self, base: Mapping[str, str] = os.environ) -> dict[str, str]:
        """``base`` with the mark that makes a process started with it, and all its children, members."""
        return {**base, MARK: self._token}

    def members(self) -> list[psutil.Process]:
        """Those alive now."""
        self.cpu_seconds()
        return [member.process for member in self._alive.values()]

    def cpu_seconds(self) -> float:
        """User and system time of all members since the root began, also of those that have ended."""
        self._find_members()
        vanished = []
        for member in self._alive.values():
            try:
                times = member.process.cpu_times()
            except psutil.NoSuchProcess:
                vanished.append(member)
            else:
                member.cpu_seconds = times.user + times.system + times.children_user + times.children_system
        self._bury(vanished)
        return self._lost_cpu_seconds + sum(member.cpu_seconds for member in self._alive.values())

    def cpu_seconds_of(self, commands: str) -> float:
        """As of the last ``cpu_seconds()``, of all whose command line matches this regular expression, also of those that
        have ended. One that its parent waited for is counted with its parent, if that matches too."""
        matching = self._matching(commands)
        pids = {member.process.pid for member in matching}
        ended = {id(member) for member in self._ended}
        return sum(member.cpu_seconds for member in matching if id(member) not in ended or member.parent not in pids)

    def sample_memory(self) -> None:
        """Note proportional set sizes (shared pages are split among their users) and keep the peaks."""
        total = 0
        for member in self._alive.values():
            try:
                member.command = _command(member.process)  # a child may have been seen before its exec
                pss = member.process.memory_full_info().pss
            except psutil.NoSuchProcess:
                continue  # the next cpu_seconds() buries it
            member.peak_pss_bytes = max(member.peak_pss_bytes, pss)
            total += pss
        self.peak_pss_bytes = max(self.peak_pss_bytes, total)

    def peak_process_pss_bytes(self, commands: str) -> int | None:
        """The largest size of any one member whose command line matches this regular expression; None where there was
        none."""
        return max((member.peak_pss_bytes for member in self._matching(commands)), default=None)

    def _matching(self, commands: str) -> list[_Member]:
        everybody = (*self._alive.values(), *self._ended)
        return [member for member in everybody if re.search(commands, member.command)]

    def _bury(self, vanished: list[_Member]) -> None:
        """Their time is now in their parents' where those live on and so waited for them; else it is kept here."""
        for member in vanished:
            del self._alive[member.process.pid]
        self._ended += vanished
        self._lost_cpu_seconds += sum(m.cpu_seconds for m in vanished if m.parent not in self._alive)

    def _find_members(self) -> None:
        pids = set(psutil.pids())
        self._strangers &= pids
        for pid in pids - self._strangers - self._alive.keys():
            try:
                process = psutil.Process(pid)
                if process.environ().get(MARK) == self._token:
                    self._alive[pid] = _Member(process, process.ppid(), _command(process))
                else:
                    self._strangers.add(pid)
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                self._strangers.add(pid)


def _command(process: psutil.Process) -> str:
    return " ".join(process.cmdline())


@contextmanager
def ended_after(*processes: BaseProcess) -> Iterator[None]:
    """Let no process that the block starts run on after it."""
    try:
        yield
    finally:
        for process in processes:
            if process.pid is not None:
                process.join(5)
                process.kill()
                process.join()
