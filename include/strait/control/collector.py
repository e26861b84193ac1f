"""Python's garbage collector, while very many objects are made that all stay.

It would look through all of them again and again, for nothing, which takes as long as making them.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """Without it for a moment; what is no longer referred to is freed all the same, but for what is in cycles."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
