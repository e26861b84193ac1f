"""Clusters whose brokers have a wall clock of their own, which jumps when it is told to."""

import time
from pathlib import Path
from typing import Any

import libfaketime

from strait.embedded.kafka import Cluster

_LIBRARY = Path(libfaketime.__file__).parent / "vendor/libfaketime/src/libfaketime.so.1"
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - not ours to choose


class JumpingCluster(Cluster):
    """Its brokers' clocks are right until ``jump``. What they measure spans of time with is never wrong, as on real
    hosts.

    A broker reads its clock's file once a second. The library can do so at each look at the clock, but its threads share
    one buffer without a lock: sooner or later one finds it empty, and the library ends the broker ("failed to parse
    FAKETIME timestamp")."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._clock = directory / "clock"
        self._pids: list[int | None] = []
        self.set_clock(0)
        environment = {
            "LD_PRELOAD": str(_LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._clock),
            "FAKETIME_CACHE_DURATION": "0",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # else the JVM's waits never end
        }
        super().__init__(directory, environment=environment, **settings)

    def start(self) -> None:
        super().start()
        self._pids = [self.pid(broker) for broker in self.broker_ids]

    def stop(self) -> None:
        super().stop()
        for pid in self._pids:
            for left in _SHARED_MEMORY.glob(f"*faketime_*_{pid}"):  # a JVM ends without taking it away
                left.unlink()

    def jump(self, seconds: int) -> None:
        """Let the clocks be so far ahead, or behind, from now on; returns once they are."""
        self.set_clock(seconds)
        second = int(time.time())
        while int(time.time()) == second:
            time.sleep(0.05)

    def set_clock(self, seconds: int) -> None:
        """The same, but within a second."""
        written = self._clock.with_suffix(".new")
        written.write_text(f"{seconds:+d}\n", encoding="ascii")
        written.replace(self._clock)  # it is read at any moment
