"""Waiting for what the demo's parts do by themselves."""

import time
from collections.abc import Callable
from typing import TypeVar

from strait.errors import SetupError

Found = TypeVar("Found")
_LOOK_EVERY_SECONDS = 0.3


def wait_for(
    what: str, seconds: float, look: Callable[[], Found], *, so_far: Callable[[], str] = lambda: "", hint: str = ""
) -> Found:
    """The first answer of ``look`` that is true. Raises SetupError after ``seconds``, with what ``so_far`` says."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise SetupError(" ".join([f"{what}: not within {seconds:.0f} s", so_far()]).strip(), hint=hint)
        time.sleep(_LOOK_EVERY_SECONDS)
    return found
