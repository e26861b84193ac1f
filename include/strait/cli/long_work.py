"""Progress of long operations, shown while a command runs."""

import time
from collections.abc import Callable

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
