"""Cyclic garbage is collected when a slot has nothing else to do.

A full collection takes 30 to 100 ms of what Spark's worker has loaded, and some more for each thousand partitions; in that
time nothing is copied. So what is there at the start is left out for good, Python's own full collections are switched
off, and a slot that is idle makes one now and then. A slot that is never idle makes one an hour: it would grow otherwise.
"""

import gc
from collections.abc import Callable

IDLE_SECONDS = 600.0
BUSY_SECONDS = 3600.0
_LOOK_SECONDS = 1.0
_NEVER = 1_000_000  # collections of the middle generation, hours apart


class Garbage:
    """Made at the start of a slot's process; `step` is called often."""

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, _NEVER)
        self._collected_at: float | None = None
        self._look_at = 0.0
        self._was_idle = False

    def step(self, now: float, is_idle: Callable[[], bool]) -> None:
        """Collect where it is time; ``is_idle`` is asked once a second at most, and twice in a row must be true."""
        if self._collected_at is None:
            self._collected_at = now
        since = now - self._collected_at
        if since < IDLE_SECONDS or now < self._look_at:
            return
        self._look_at = now + _LOOK_SECONDS
        idle = is_idle()
        if (idle and self._was_idle) or since >= BUSY_SECONDS:
            gc.collect()
            self._collected_at = now
        self._was_idle = idle
