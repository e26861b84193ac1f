"""Collects cyclic garbage when a slot has nothing else to do.

A full collection takes 30 to 100 ms for the objects that Spark's worker has loaded, and some more for each thousand
partitions; nothing is copied in that time. So the objects that exist at the start are excluded for good, Python's own
full collections are disabled, and an idle slot runs one at most every 10 minutes. A slot that is never idle runs one an
hour, since it would grow otherwise.
"""

import gc
from collections.abc import Callable

IDLE_SECONDS = 600.0
BUSY_SECONDS = 3600.0
_LOOK_SECONDS = 1.0
_NEVER = 1_000_000  # collections of the middle generation, hours apart


class Garbage:
    """Created at the start of a slot's process; `step` is called often."""

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, _NEVER)
        self._collected_at: float | None = None
        self._look_at = 0.0
        self._was_idle = False

    def step(self, now: float, is_idle: Callable[[], bool]) -> None:
        """Run a collection if it is due. ``is_idle`` is called at most once a second, and must return True twice in a
        row unless BUSY_SECONDS have passed."""
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
