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
_LEAST_BYTES_PER_SECOND = 1e3
_STRETCH_SECONDS = 0.25
_BURST_SECONDS = 0.05
_REQUEST_SECONDS = 0.1
_FORGOTTEN_SECONDS = 60.0
_TURN_SECONDS = 0.02  # so long the line whose turn it is is waited for: it may have nothing to send any more


class DestinationQuota:
    """Of one broker, shared by the lines to it. Times are the loop's, sizes bytes."""

    def __init__(self) -> None:
        self._taken: deque[list[float]] = deque()  # since when, and how much, in short stretches
        self._bytes_per_second = math.inf
        self._held_up_at = -math.inf
        self._next_at = -math.inf
        self._waiting: dict[int, None] = {}  # lines, the one that has waited longest first

    def wait(self, line: int, now: float) -> float:
        """Seconds until something may be sent over a line; 0 now. Lines that wait take turns: a timer of one that always
        comes first would leave nothing to the others."""
        waiting = self._waiting
        if now < self._next_at:
            waiting[line] = None
            return self._next_at - now
        while waiting and (first := next(iter(waiting))) != line:
            if now < self._next_at + _TURN_SECONDS:
                waiting[line] = None
                return self._next_at + _TURN_SECONDS - now
            del waiting[first]
        return 0.0

    def request_bytes(self, most: int, now: float) -> int:
        """How large a request should be, so that what comes after it need not wait for long."""
        return int(min(most, self._rate(now) * _REQUEST_SECONDS))

    def sent(self, line: int, size: int, now: float) -> None:
        self._waiting.pop(line, None)
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
        It goes on counting a burst until its window is over, so it would hold up whatever came before then again.

        What was counted may be forgotten here by now, so the quota is no less than that; nor is it less than what would
        make a whole window at the present rate wait for so long.
        """
        counted = sum(size for _, size in self._taken)
        part = _WINDOW_SECONDS + seconds
        quota = counted / part * _BELOW
        if self._bytes_per_second != math.inf:
            quota = max(quota, self._rate(now) * _WINDOW_SECONDS / part * _BELOW)
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
