"""Waiting for programs that start on this machine, without sleeping for a known time."""

import os
import time
from collections.abc import Callable
from typing import TypeVar

from strait.errors import SetupError

Found = TypeVar("Found")
_PAUSE_SECONDS = (0.05, 0.3)
"""Between two attempts, longer each time: the program that is waited for needs the CPU."""
_MOST_PATIENCE = 4.0


def patience() -> float:
    """Return the factor by which every bound grows now: processes that want to run, per core. 1 on a quiet machine."""
    return min(_MOST_PATIENCE, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def wait_for(
    what: str, seconds: float, look: Callable[[], Found], *, so_far: Callable[[], str] = lambda: "", hint: str = ""
) -> Found:
    """Call ``look`` every few tenths of a second and return its first true result. Raises SetupError after ``seconds``, on a busy machine
    after some times as long (`patience`), with the text that ``so_far`` returns."""
    began = time.monotonic()
    pause, longest = _PAUSE_SECONDS
    while not (found := look()):
        waited = time.monotonic() - began
        if waited > seconds * patience():
            raise SetupError(" ".join([f"{what}: not within {waited:.0f} s", so_far()]).strip(), hint=hint)
        time.sleep(pause)
        pause = min(longest, 1.2 * pause)
    return found
