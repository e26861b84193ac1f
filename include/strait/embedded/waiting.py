"""Waiting for programs that start on this machine, without sleeping for a known time."""

import math
import os
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from strait.errors import SetupError

Found = TypeVar("Found")
_PAUSE_SECONDS = (0.05, 0.3)
"""Between two attempts, longer each time: the program that is waited for needs the CPU."""
_MOST_PATIENCE = 4.0


def patience() -> float:
    """Return the factor by which every bound grows now: processes that want to run, per core. 1 on a quiet machine."""
    return min(_MOST_PATIENCE, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def patient_tries(seconds: float, most_seconds: float = math.inf) -> Iterator[None]:
    """Yield immediately, then again after each pause, until ``seconds`` are over; on a
    busy machine until some times as long are (`patience`), at most ``most_seconds``."""
    began = time.monotonic()
    pause, longest = _PAUSE_SECONDS
    while True:
        yield
        if time.monotonic() - began > min(most_seconds, seconds * patience()):
            return
        time.sleep(pause)
        pause = min(longest, 1.2 * pause)


def wait_for(
    what: str, seconds: float, look: Callable[[], Found], *, so_far: Callable[[], str] = lambda: "", hint: str = ""
) -> Found:
    """Call ``look`` until it returns a true result, and return that. Raises SetupError once the time of `patient_tries` is
    over, with the text that ``so_far`` returns."""
    began = time.monotonic()
    for _ in patient_tries(seconds):
        if found := look():
            return found
    waited = time.monotonic() - began
    raise SetupError(" ".join([f"{what}: not within {waited:.0f} s", so_far()]).strip(), hint=hint)
