"""Limits how many coroutines run at a time, in order of arrival."""

from collections import deque

from strait.net.event_loop import Loop
from strait.net.tasks import Future


class Turns:
    """``most``: coroutines that may have their turn at the same time."""

    def __init__(self, loop: Loop, most: int) -> None:
        self._loop = loop
        self._left = most
        self._queue: deque[Future[None]] = deque()

    async def take(self) -> None:
        """Wait for a turn."""
        if self._left:
            self._left -= 1
            return
        turn: Future[None] = Future(self._loop)
        self._queue.append(turn)
        await turn

    def end(self) -> None:
        """Pass the turn to the next coroutine that waits."""
        if self._queue:
            self._queue.popleft().resolve(None)
        else:
            self._left += 1
