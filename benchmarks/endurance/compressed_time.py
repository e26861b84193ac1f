"""Time that passes as fast as a scenario says, on the brokers and in this process.

Brokers: their wall clock, by which they stamp and expire records and roll and compact segments. They measure spans of
time, such as the pause between two looks of the cleaner, by a clock that stays right; so `CLEANS_OFTEN` makes those
pauses short. This process: `time.time` and `time.time_ns`, by which a slot's reports and checkpoints say when they
were made.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from support.kafka.clocks import JumpingCluster

CLEANS_OFTEN = {
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "200",
}
"""Broker settings. What they change is when the broker looks, not what it does."""


class CompressedCluster(JumpingCluster):
    """Its clock starts ``seconds_ago``."""

    def __init__(self, directory: Path, seconds_ago: int, **settings: Any) -> None:
        super().__init__(directory, properties=CLEANS_OFTEN, **settings)
        self.jump(-seconds_ago)


class Clock:
    """Seconds that the clocks of clusters and of this process are behind the machine's."""

    def __init__(self, behind_seconds: int, *clusters: CompressedCluster) -> None:
        self._behind = behind_seconds
        self._clusters = clusters

    @property
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def advance(self, seconds: int) -> None:
        """Let time pass, on the clusters too, but not beyond the present."""
        self._behind = max(0, self._behind - seconds)
        for cluster in self._clusters:
            cluster.jump(-self._behind)

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """In this process, as long as the block lasts."""
        seconds, nanoseconds = time.time, time.time_ns
        with (
            patch.object(time, "time", lambda: seconds() - self._behind),
            patch.object(time, "time_ns", lambda: nanoseconds() - self._behind * 1_000_000_000),
        ):
            yield
