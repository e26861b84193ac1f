"""How fast one destination broker is sent to: as fast as it takes, until its quota holds the link up; then evenly.

A broker counts a quota over the last ten seconds or so, and after a burst it takes nothing until the mean is right
again (KIP-219). Whoever sends all that it has as soon as it may is therefore let through for a moment and then stopped
for many seconds, together with every record that came meanwhile.
"""

import math
from collections import deque

_WINDOW_SECONDS = 10.5
"""Kafka's default: eleven samples of a second (`quota.window.num`, `quota.window.size.seconds`), of which the last one
is not over yet."""
_BELOW = 0.98  # of what the quota lets through, so that what it counts besides records fits
_LEAST_FALL = 0.5  # in one step: part of what the broker has counted may be forgotten here by now
_LEAST_BYTES_PER_SECOND = 1e3
_STRETCH_SECONDS = 0.25
_BURST_SECONDS = 0.05
_REQUEST_SECONDS = 0.1
_FORGOTTEN_SECONDS = 60.0


class DestinationQuota:
    """Of one broker, shared by the lines to it. Times are the loop's, sizes bytes."""

    def __init__(self) -> None:
        self._taken: deque[list[float]] = deque()  # since when, and how much, in short stretches
        self._bytes_per_second = math.inf
        self._held_up_at = -math.inf
        self._next_at = -math.inf

    def wait(self, now: float) -> float:
        """Seconds until something may be sent; 0 now."""
        return max(0.0, self._next_at - now)

    def request_bytes(self, most: int, now: float) -> int:
        """How large a request should be, so that what comes after it need not wait for long."""
        return int(min(most, self._rate(now) * _REQUEST_SECONDS))

    def sent(self, size: int, now: float) -> None:
        self._next_at = max(self._next_at, now - _BURST_SECONDS) + size / self._rate(now)

    def answered(self, size: int, throttle_ms: int, now: float) -> None:
        """The broker has taken a request of that size, and takes nothing more for as long as it says."""
        taken = self._taken
        if taken and taken[-1][0] > now - _STRETCH_SECONDS:
            taken[-1][1] += size
        else:
            taken.append([now, size])
        while taken[0][0] < now - _WINDOW_SECONDS:
            taken.popleft()
        if throttle_ms:
            self._hold_up(throttle_ms / 1000, now)

    def _hold_up(self, seconds: float, now: float) -> None:
        """The broker's wait is such that what it has counted makes the quota, as a mean over its window and the wait.
        It goes on counting a burst until its window is over, so it would hold up whatever came before then again."""
        counted = sum(size for _, size in self._taken)
        quota = counted / (_WINDOW_SECONDS + seconds) * _BELOW
        if self._bytes_per_second != math.inf:
            quota = max(quota, self._bytes_per_second * _LEAST_FALL)
        self._bytes_per_second = max(quota, _LEAST_BYTES_PER_SECOND)
        self._held_up_at = now
        free_at = now + seconds
        for at, size in self._taken:
            if counted <= self._bytes_per_second * _WINDOW_SECONDS:
                break
            counted -= size
            free_at = max(free_at, at + _WINDOW_SECONDS)
        self._next_at = max(self._next_at, free_at)

    def _rate(self, now: float) -> float:
        """Grows while nothing is held up, at first so little that going past the quota costs a fraction of a second."""
        if self._bytes_per_second == math.inf:
            return math.inf
        quiet = now - self._held_up_at
        if quiet > _FORGOTTEN_SECONDS:
            self._bytes_per_second = math.inf
        return self._bytes_per_second * (1 + quiet / 500 + (quiet / 40) ** 4)
