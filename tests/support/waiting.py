"""Waiting for what takes an unknown time, without sleeping for a known one."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], *, what: str | Callable[[], str], within_seconds: float = 180.0) -> T:
    """The first answer of ``look`` that is true. Fails, saying ``what`` never came, after a deadline meant for a busy
    machine. ``what`` as a function is asked then, so that it may tell what is known at the end."""
    deadline = time.monotonic() + within_seconds
    while not (answer := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_seconds:g} s: {what() if callable(what) else what}")
        time.sleep(0.05)
    return answer
