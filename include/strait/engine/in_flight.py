"""Limits the bytes and requests in flight over one connection to a destination broker to the amount that keeps it busy.

Any more would wait at the broker, and each later record would wait after them. Once a quota throttles the link, the
broker processes the requests that have arrived one by one, with a pause before each (KIP-219). Pure.
"""

import math
from collections import deque

BUSY_SECONDS = 0.1
"""How long the broker works on the bytes in flight, not counting the time that a response takes."""
LEAST_BYTES = 4 << 20
"""May always be in flight: one request of the largest size, before the broker's pace is known."""
MOST_BYTES = 64 << 20
LEAST_REQUESTS = 32
"""May always be in flight. A broker serves the requests of a connection one by one, and each that waits for its
followers takes tens of milliseconds, however small it is. Batches that wait for room are combined into fewer requests."""
_PACE_SECONDS = 1.0
_STRETCH_SECONDS = 0.1
_WAY_SECONDS = 300.0


class InFlight:
    """The bytes and requests in flight over one connection. Times are in seconds of the loop's clock, sizes in bytes.

    The pace is the bytes and requests acknowledged in the last second. The way is the shortest response time of the current and the
    previous period of 300 s, which no queue has lengthened; it includes replication to followers.
    """

    def __init__(self) -> None:
        self.size = 0
        self.requests = 0
        self._answered: deque[list[float]] = deque()  # [start, bytes, requests] of short periods
        self._way_seconds = (math.inf, math.inf)  # in this period of 300 s, and in the one before
        self._way_until = -math.inf

    def has_room(self, now: float) -> bool:
        """Return whether more may be sent."""
        if self.size < LEAST_BYTES and self.requests < LEAST_REQUESTS:
            return True
        size, requests = self._most(now)
        return self.size < size and self.requests < requests

    def sent(self, size: int) -> None:
        self.size += size
        self.requests += 1

    def lost(self, size: int) -> None:
        """Record that a request of ``size`` bytes will get no response."""
        self.size -= size
        self.requests -= 1

    def answered(self, size: int, seconds: float, now: float) -> None:
        """Record the response to a request of ``size`` bytes, ``seconds`` after it was sent."""
        self.size -= size
        self.requests -= 1
        if now >= self._way_until:
            self._way_seconds = math.inf, self._way_seconds[0]
            self._way_until = now + _WAY_SECONDS
        self._way_seconds = min(seconds, self._way_seconds[0]), self._way_seconds[1]
        if self._answered and self._answered[-1][0] > now - _STRETCH_SECONDS:
            self._answered[-1][1] += size
            self._answered[-1][2] += 1
        else:
            self._answered.append([now, size, 1])

    def _most(self, now: float) -> tuple[float, float]:
        """Return how many bytes and how many requests may be in flight."""
        answered = self._answered
        while answered and answered[0][0] <= now - _PACE_SECONDS:
            answered.popleft()
        if not answered:
            return LEAST_BYTES, LEAST_REQUESTS
        stretch = max(2 * _STRETCH_SECONDS, now - answered[0][0])
        seconds = (BUSY_SECONDS + min(self._way_seconds)) / stretch
        size = sum(size for _, size, _ in answered) * seconds
        requests = sum(requests for _, _, requests in answered) * seconds
        return min(MOST_BYTES, max(LEAST_BYTES, size)), max(LEAST_REQUESTS, requests)
