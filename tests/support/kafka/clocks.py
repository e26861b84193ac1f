"""Clusters whose brokers have a wall clock of their own, which jumps when it is told to."""

import mmap
import subprocess
from pathlib import Path
from typing import Any

from strait.embedded.kafka import Cluster

_SOURCE = Path(__file__).with_name("jumping_clock.c")


class JumpingClock:
    """The wall clock of processes with this ``environment``: right until ``jump``. Spans of time are never wrong, as on
    real hosts. Needs a C compiler.

    libfaketime reads its file at each look at the clock, into memory that all threads share: with a broker's threads it
    ended the broker after some hundred jumps, or its clock was right for a moment.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        library, file = directory / "clock.so", directory / "clock"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, _SOURCE], check=True)
        file.write_bytes(bytes(8))
        with file.open("r+b") as opened:
            self._ahead = memoryview(mmap.mmap(opened.fileno(), 8)).cast("q")
        self.environment = {"LD_PRELOAD": str(library), "STRAIT_TEST_CLOCK": str(file)}

    def jump(self, seconds: int) -> None:
        """Let the clock be so far ahead, or behind, from now on."""
        self._ahead[0] = seconds


class JumpingCluster(Cluster):
    """Its brokers' clocks are right until ``jump``."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self._clock = JumpingClock(directory)
        super().__init__(directory, environment=self._clock.environment, **settings)

    def jump(self, seconds: int) -> None:
        """Let the clocks be so far ahead, or behind, from now on."""
        self._clock.jump(seconds)
