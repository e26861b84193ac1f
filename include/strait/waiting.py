"""The time of day, and how to repeat something until it holds or a time is over; for programs that start on this machine
see `strait.embedded.waiting`."""

import time
from collections.abc import Iterator


def unix_ms() -> int:
    """Return the time in ms since 1970."""
    return time.time_ns() // 1_000_000


def tries(seconds: float, pause_seconds: float) -> Iterator[None]:
    """Yield immediately, then again after each pause, until ``seconds`` are over. The caller leaves the loop once it has
    succeeded; the code after the loop handles the case that it has not."""
    deadline = time.monotonic() + seconds
    while True:
        yield
        if time.monotonic() >= deadline:
            return
        time.sleep(pause_seconds)
