"""Limits the size of a produce request to the largest that its broker accepts.

A broker that gets a request above its `socket.request.max.bytes` closes the connection without an error, exactly as a
broker that fails. So requests shrink after a disconnect that may mean that, and grow again after a while. Pure.
"""

GROW_SECONDS = 600.0
"""A larger request is tried after this time; each attempt that fails costs a connection."""


class RequestSize:
    """The request size of one connection to a broker. Times are in seconds of the loop's clock, sizes in bytes."""

    def __init__(self, most: int) -> None:
        self._most = self._limit = most
        self._answered = 0  # the largest request that was ever answered
        self._grow_at = 0.0

    def limit(self, now: float) -> int:
        """Return the largest size of the next request in bytes. A request has at least one batch, regardless of its
        size."""
        if self._limit < self._most and now >= self._grow_at:
            self._limit = min(self._most, 2 * self._limit)
            self._grow_at = now + GROW_SECONDS
        return self._limit

    def answered(self, size: int) -> None:
        """Record that the broker accepts requests of ``size`` bytes."""
        self._answered = max(self._answered, size)

    def lost(self, size: int, limit: int, now: float) -> None:
        """Record that a request of ``size`` bytes, created under ``limit``, got no response because the connection
        broke. Of several requests lost together, one is counted."""
        if limit == self._limit and size > max(self._answered, limit // 2) and limit > 1:
            self._limit = limit // 2
            self._grow_at = now + GROW_SECONDS
