"""Waiting for the demo's parts."""

import time
from collections.abc import Callable
from typing import TypeVar

from strait.errors import SetupError

Found = TypeVar("Found")
_LOOK_EVERY_SECONDS = 0.3


def wait_for(
    what: str, seconds: float, look: Callable[[], Found], *, so_far: Callable[[], str] = lambda: "", hint: str = ""
) -> Found:
    """Call ``look`` every 0.3 s and return its first true result. Raises SetupError after ``seconds``, with the text
    that ``so_far`` returns."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise SetupError(" ".join([f"{what}: not within {seconds:.0f} s", so_far()]).strip(), hint=hint)
        time.sleep(_LOOK_EVERY_SECONDS)
    return found
