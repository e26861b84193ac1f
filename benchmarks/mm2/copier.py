"""A copier under test: how it is started, watched and ended, whichever it is."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from mm2.process_tree import ProcessTree
from strait.embedded.detached import Detached, start_leashed
from strait.errors import MeasurementError

_GRACE_SECONDS = 20.0
_TELLING = ("error", "exception", "ERROR", "Exception")
_ANNOUNCED_LINES = 4  # of a list of problems, with the line that it begins with


@dataclass(frozen=True, slots=True)
class Command:
    """What starts a copier of one topic.

    ``slot_commands``: regular expression that the command lines of those of its processes match that hold the data.
    """

    copier: str
    argv: tuple[str, ...]
    log: Path
    destination_topic: str
    slot_commands: str
    environment: Mapping[str, str] = field(default_factory=dict)


class Running:
    """A copier that was started."""

    def __init__(self, command: Command, tree: ProcessTree, process: Detached) -> None:
        self.command = command
        self.tree = tree
        self._process = process

    def require_alive(self) -> None:
        """Raises MeasurementError with the log's most telling line if it has ended."""
        if self._process.pid is None:
            raise MeasurementError(f"{self.command.copier}: ended by itself: {self.last_words()}")

    def last_words(self) -> str:
        """The last line of its log that speaks of an error, with what it announces, else the last line."""
        lines = [line for file in self._logs() for line in file.read_text("utf-8", "replace").splitlines() if line]
        telling = [
            at
            for at, line in enumerate(lines)
            if any(word in line for word in _TELLING) and not line.startswith("\tat ")
        ]
        last = telling[-1] if telling else len(lines) - 1
        behind = last + (_ANNOUNCED_LINES if lines and lines[last].endswith(":") else 1)
        return " ".join(line.strip() for line in lines[last:behind]) or "its log is empty"

    def _logs(self) -> list[Path]:
        output = self.command.log.with_suffix(".out")
        return [file for file in (self.command.log, output) if file.exists()]


@contextmanager
def running(command: Command, directory: Path) -> Iterator[Running]:
    """Start it, and end all of it at the end of the block."""
    tree = ProcessTree()
    process = Detached(directory / f"{command.copier}.process.json")
    start_leashed(
        process,
        command.argv,
        environment=tree.environment({**os.environ, **command.environment}),
        log=command.log.with_suffix(".out"),
        directory=directory,
    )
    try:
        yield Running(command, tree, process)
    finally:
        process.stop(signal.SIGTERM, grace_seconds=_GRACE_SECONDS)
        _end(tree.members())


def _end(left: list[psutil.Process]) -> None:
    """What led sessions of its own and did not end with the root."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        for process in left:
            if process.is_running():
                process.send_signal(signal_number)
        _, left = psutil.wait_procs(left, timeout=5)
