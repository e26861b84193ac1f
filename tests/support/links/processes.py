"""Slots and tasks as processes of their own, which a test may kill."""

import os
import signal
import subprocess
import sys
from pathlib import Path


class StartsProcesses:
    """Whoever starts processes; what they say is in `slots.log` in ``folder``."""

    folder: Path
    _running: list[subprocess.Popen[bytes]]

    def start_process(self, module: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Run a module of the tests."""
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "slots.log").open("ab"),
            start_new_session=True,  # with a share of a busy machine of its own, as brokers and Spark have
        )
        self._running.append(process)
        return process

    @staticmethod
    def kill(process: subprocess.Popen[bytes]) -> None:
        """End it as a crash would."""
        process.send_signal(signal.SIGKILL)
        process.wait(10)

    def stop(self) -> None:
        """End every process."""
        for process in self._running:
            if process.poll() is None:
                process.kill()
            process.wait(10)

    def log(self) -> str:
        """All that they have said."""
        path = self.folder / "slots.log"
        return path.read_text() if path.exists() else ""
