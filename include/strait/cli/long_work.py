"""Long operations: their progress, shown while a command runs, and their end on request."""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from strait.cli.printing import echo

_SECONDS = 2.0


def now_and_then(show: Callable[[str], None]) -> Callable[[str], None]:
    """Return a function that passes lines of progress to ``show``: one every 2 s at most, none in the first 2 s."""
    shown_at = time.monotonic()

    def tell(text: str) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at > _SECONDS:
            shown_at = time.monotonic()
            show(text)

    return tell


def on_stderr() -> Callable[[str], None]:
    """Return a function that prints a command's progress on standard error, separate from its output."""
    return now_and_then(lambda text: echo(text, err=True))


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGINT and SIGTERM set while the block runs."""
    stopped = threading.Event()
    before = {number: signal.signal(number, lambda *_: stopped.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
