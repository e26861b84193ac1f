"""Waiting for what takes an unknown time, without sleeping for a known one."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], *, what: str, within_seconds: float = 90.0) -> T:
    """The first answer of ``look`` that is true. Fails, saying ``what`` never came, after a deadline meant for a busy
    machine."""
    deadline = time.monotonic() + within_seconds
    while not (answer := look()):
        assert time.monotonic() < deadline, f"not within {within_seconds:g} s: {what}"
        time.sleep(0.05)
    return answer
