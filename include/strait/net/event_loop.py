"""The single thread of a slot: sockets through epoll, timers, and a queue for results of helper threads.

Everything in the engine runs on this thread, so nothing else in it needs a lock.
"""

import contextlib
import heapq
import itertools
import math
import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol


class Ready(Protocol):
    """A handler that the loop calls when a socket can be read or written."""

    def on_ready(self, readable: bool, writable: bool) -> None: ...


class Timer:
    """A scheduled call; ``cancel`` prevents it."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


STALL_SECONDS = 30.0
"""A process that was stalled for this long (suspended, swapped out) may hold batches from before another instance took
over."""


class Loop:
    """Times are seconds of ``time.monotonic``. After the process was stalled, ``on_stall`` is called first, with the
    number of seconds, before anything that was queued is written."""

    def __init__(self) -> None:
        self.on_stall: Callable[[float], None] = lambda _: None
        self._epoll = select.epoll()  # `selectors` would wrap each event in Python; there may be thousands a second
        self._watched: dict[int, Ready] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._handed_in: deque[Callable[[], None]] = deque()  # append and popleft are atomic: the one thread-safe part
        self._closing = threading.Lock()  # the descriptor of a closed pipe may soon be that of another file
        self._closed = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._epoll.register(self._wake_read, select.EPOLLIN)
        self.now = time.monotonic()

    def fileno(self) -> int:
        """Return a descriptor that can be read when an event waits: another loop may watch this one by it."""
        return self._epoll.fileno()

    @property
    def next_at(self) -> float:
        """When the next timer is due, in monotonic seconds; infinite if there is none."""
        return self._timers[0][0] if self._timers else math.inf

    def watch(self, fd: int, ready: Ready, *, writable: bool) -> None:
        """Call ``ready`` when the socket can be read, and if ``writable`` also when it can be written."""
        events = select.EPOLLIN | (select.EPOLLOUT if writable else 0)
        if fd in self._watched:
            self._epoll.modify(fd, events)
        else:
            self._epoll.register(fd, events)
        self._watched[fd] = ready

    def forget(self, fd: int) -> None:
        """Stop watching a socket."""
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def call_later(self, seconds: float, action: Callable[[], None]) -> Timer:
        """Call ``action`` once, that many seconds from now."""
        timer = Timer(action)
        heapq.heappush(self._timers, (self.now + seconds, next(self._order), timer))
        return timer

    def call_from_thread(self, action: Callable[[], None]) -> None:
        """Call ``action`` on the loop's thread, soon; never once the loop is closed. Safe from any thread."""
        self._handed_in.append(action)
        with self._closing, contextlib.suppress(BlockingIOError):  # a full pipe wakes the loop anyway
            if not self._closed:
                os.write(self._wake_write, b"\0")

    def run_once(self, max_wait_seconds: float) -> None:
        """Wait for the first event, at most that long, and serve everything that is due."""
        wait, before = max_wait_seconds, self.now
        if self._timers:
            wait = min(wait, max(0.0, self._timers[0][0] - time.monotonic()))
        events = self._epoll.poll(max(0.0, wait))
        self.now = time.monotonic()
        if self.now - before > STALL_SECONDS + max_wait_seconds:
            self.on_stall(self.now - before)
        for fd, mask in events:
            if fd == self._wake_read:
                self._drain_wake_pipe()
            elif (ready := self._watched.get(fd)) is not None:  # an earlier event may have closed it
                ready.on_ready(bool(mask & ~select.EPOLLOUT), bool(mask & ~select.EPOLLIN))  # an error counts as both
        while self._handed_in:
            self._handed_in.popleft()()
        while self._timers and self._timers[0][0] <= self.now:
            timer = heapq.heappop(self._timers)[2]
            if timer.action is not None:
                timer.action()

    @property
    def stood_still(self) -> bool:
        """Whether the process was suspended during this turn: the data that it is about to write is as old as that."""
        return time.monotonic() - self.now > STALL_SECONDS

    def close(self) -> None:
        self._epoll.close()
        with self._closing:
            self._closed = True
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _drain_wake_pipe(self) -> None:
        try:
            while os.read(self._wake_read, 4096):
                pass
        except BlockingIOError:
            return
