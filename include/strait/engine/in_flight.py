"""How much may be in flight over one line to a destination broker: what keeps the broker busy, and no more.

Whatever else is in flight waits in front of it, and each record that comes later waits behind that. Once a quota holds
the link up, the broker takes what has arrived request by request, with a pause before each (KIP-219). Pure.
"""

import math
from collections import deque

BUSY_SECONDS = 0.1
"""So long the broker works on what is in flight, besides the time for which an answer is on its way."""
LEAST_BYTES = 4 << 20
"""May always be in flight: one request of the largest size, before the broker's pace is known."""
MOST_BYTES = 64 << 20
_PACE_SECONDS = 1.0
_STRETCH_SECONDS = 0.1
_WAY_SECONDS = 300.0


class InFlight:
    """Of one line. Times are the loop's, sizes bytes.

    Pace is what was answered in the last second; the way is the shortest time to an answer in the last minutes, which
    no queue has lengthened. It contains the way of followers.
    """

    def __init__(self) -> None:
        self.size = 0
        self._answered: deque[list[float]] = deque()  # since when, and how much, in short stretches
        self._way_seconds = (math.inf, math.inf)  # of this stretch of time, and of the one before
        self._way_until = -math.inf

    def has_room(self, now: float) -> bool:
        """Whether more may be sent."""
        return self.size < LEAST_BYTES or self.size < self._most(now)

    def sent(self, size: int) -> None:
        self.size += size

    def lost(self, size: int) -> None:
        """No answer will come."""
        self.size -= size

    def answered(self, size: int, seconds: float, now: float) -> None:
        """The answer to a request of that size came after so long."""
        self.size -= size
        if now >= self._way_until:
            self._way_seconds = math.inf, self._way_seconds[0]
            self._way_until = now + _WAY_SECONDS
        self._way_seconds = min(seconds, self._way_seconds[0]), self._way_seconds[1]
        if self._answered and self._answered[-1][0] > now - _STRETCH_SECONDS:
            self._answered[-1][1] += size
        else:
            self._answered.append([now, size])

    def _most(self, now: float) -> float:
        answered = self._answered
        while answered and answered[0][0] <= now - _PACE_SECONDS:
            answered.popleft()
        if not answered:
            return LEAST_BYTES
        pace = sum(size for _, size in answered) / max(2 * _STRETCH_SECONDS, now - answered[0][0])
        return min(MOST_BYTES, pace * (BUSY_SECONDS + min(self._way_seconds)))
