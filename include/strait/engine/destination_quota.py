"""Paces the data sent to one destination broker: as fast as it accepts it until its quota throttles the link, then
evenly.

A broker averages a quota over about the last ten seconds, and after a burst it accepts nothing until the average is
within the quota again (KIP-219). A client that sends all its data as soon as it may is therefore let through for a
moment and then stopped for many seconds, together with every record that arrived meanwhile.
"""

import math
from collections import deque

_WINDOW_SECONDS = 10.5
"""Kafka's default: eleven samples of one second (`quota.window.num`, `quota.window.size.seconds`), of which the last
one is not complete yet."""
_BELOW = 0.98  # share of the quota to use, so that the bytes that it counts besides records fit
_LEAST_BYTES_PER_SECOND = 1e3
_STRETCH_SECONDS = 0.25
_BURST_SECONDS = 0.05
_REQUEST_SECONDS = 0.1
_FORGOTTEN_SECONDS = 60.0
_TURN_SECONDS = 0.02  # how long to wait for the connection whose turn it is; it may have nothing left to send


class DestinationQuota:
    """Paces the requests to one broker, shared by the connections to it. Times are in seconds of the loop's clock,
    sizes in bytes."""

    def __init__(self) -> None:
        self._taken: deque[list[float]] = deque()  # [start, bytes] of short periods
        self._bytes_per_second = math.inf
        self._held_up_at = -math.inf
        self._next_at = -math.inf
        self._waiting: dict[int, None] = {}  # connections, the one that has waited longest first

    @property
    def is_known(self) -> bool:
        """Whether the broker has throttled the link lately."""
        return self._bytes_per_second != math.inf

    def wait(self, line: int, now: float) -> float:
        """Return the seconds until data may be sent over a connection; 0 means now. Waiting connections take turns: a
        timer of one that always comes first would leave nothing to the others."""
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
        """Return the size of the next request in bytes, such that later data need not wait for long."""
        return int(min(most, self._rate(now) * _REQUEST_SECONDS))

    def sent(self, line: int, size: int, now: float) -> None:
        """Pause for the time that this request takes at the current rate; not for longer than the broker's window, since
        the rate may be much too low: that of a moment in which other clients used the quota."""
        self._waiting.pop(line, None)
        next_at = max(self._next_at, now - _BURST_SECONDS) + size / self._rate(now)
        self._next_at = max(self._next_at, min(next_at, now + _WINDOW_SECONDS))

    def answered(self, size: int, throttle_ms: int, now: float) -> None:
        """Record that the broker has accepted a request of ``size`` bytes and accepts nothing more for
        ``throttle_ms``."""
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
        """Derive the quota from a throttle time, and pause sending until enough of the counted bytes have left the
        window.

        The broker chooses the throttle time so that the bytes it has counted, averaged over its window plus that time,
        equal the quota. It counts a burst until its window is over, so it would throttle a request that arrives before
        then again.

        Some of the counted bytes may already be dropped here, so the quota is at least this estimate. It is also at
        least the quota under which a whole window at the current rate would be throttled for this long.
        """
        counted = sum(size for _, size in self._taken)
        part = _WINDOW_SECONDS + seconds
        quota = counted / part * _BELOW
        if self.is_known:
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
        """Return the current rate in bytes per second. It grows while the broker does not throttle, at first so slowly
        that exceeding the quota costs a fraction of a second."""
        if not self.is_known:
            return math.inf
        quiet = now - self._held_up_at
        if quiet > _FORGOTTEN_SECONDS:
            self._bytes_per_second = math.inf
        return self._bytes_per_second * (1 + quiet / 500 + (quiet / 40) ** 4)
