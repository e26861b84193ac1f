"""Pauses Python's garbage collector while a large number of long-lived objects is created.

It would scan all of them repeatedly and free nothing, which takes as long as creating them.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Disable the collector temporarily. Objects without references are still freed, except those in reference
    cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
