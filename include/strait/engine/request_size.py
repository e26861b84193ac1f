"""How large a produce request may be: as large as its broker takes.

A broker closes the connection on which a request above its `socket.request.max.bytes` comes, without a word, as one does
that dies. So requests shrink after a break that may mean that, and grow again after a while. Pure.
"""

GROW_SECONDS = 600.0
"""After which a larger request is tried: each time that fails costs a connection."""


class RequestSize:
    """Of one line to a broker. Times are the loop's, sizes bytes."""

    def __init__(self, most: int) -> None:
        self._most = self._limit = most
        self._answered = 0  # the largest request that ever was
        self._grow_at = 0.0

    def limit(self, now: float) -> int:
        """How large the next request is to be. A request has one batch at least, whatever its size."""
        if self._limit < self._most and now >= self._grow_at:
            self._limit = min(self._most, 2 * self._limit)
            self._grow_at = now + GROW_SECONDS
        return self._limit

    def answered(self, size: int) -> None:
        """The broker takes requests of that size."""
        self._answered = max(self._answered, size)

    def lost(self, size: int, limit: int, now: float) -> None:
        """The connection broke, and a request of that size, made under that limit, got no answer. Of several that one
        break has taken, one counts."""
        if limit == self._limit and size > max(self._answered, limit // 2) and limit > 1:
            self._limit = limit // 2
            self._grow_at = now + GROW_SECONDS
