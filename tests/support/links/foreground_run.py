"""`strait run` as a process, and what it says."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil

from strait.launch import processes
from support.fixtures.wheel import Installed

STRAIT = Path(sys.executable).with_name("strait")


def strait_of(version: Installed | None) -> tuple[str, dict[str, str]]:
    """The command `strait` and its environment; ``version``: another one, None: this checkout."""
    return (str(STRAIT), dict(os.environ)) if version is None else (str(version.strait), version.environment)


class Run:
    """One `strait run --json`, and what it has said so far. ``version``: see `strait_of`."""

    def __init__(
        self, links_file: Path, folder: Path, name: str, *arguments: str, version: Installed | None = None
    ) -> None:
        self.home = folder / "home"
        self._said = folder / f"{name}.out"
        self.errors = folder / f"{name}.err"
        strait, environment = strait_of(version)
        with self._said.open("wb") as out, self.errors.open("wb") as err:
            self.process = subprocess.Popen(
                [strait, "run", "--config", str(links_file), "--interval", "1", "--json", *arguments],
                stdout=out,
                stderr=err,
                env=environment | {"STRAIT_HOME": str(self.home)},
            )

    @property
    def folder(self) -> Path:
        return next((self.home / "run").glob(f"*-{self.process.pid}"))

    def events(self, event: str) -> list[dict[str, Any]]:
        whole = self._said.read_text().rpartition("\n")[0]
        found = [json.loads(line) for line in whole.splitlines()]
        assert self.process.poll() is None or found, self.errors.read_text()
        return [item for item in found if item["event"] == event]

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """The exit code, and how many seconds it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(60), time.monotonic() - began

    def applications(self) -> list[psutil.Process]:
        """What it has started."""
        return [one for found in processes.find(self.folder / "applications").values() for one in found]


def lives(process: psutil.Process) -> bool:
    """Zombies are dead; who adopted them may take its time to bury them."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
