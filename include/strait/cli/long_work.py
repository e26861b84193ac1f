"""How far work is that takes long, shown while a command is at it."""

import time
from collections.abc import Callable

import typer

_SECONDS = 2.0


def now_and_then(show: Callable[[str], None]) -> Callable[[str], None]:
    """Show a line of progress every two seconds at most, none before that."""
    shown_at = time.monotonic()

    def tell(text: str) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at > _SECONDS:
            shown_at = time.monotonic()
            show(text)

    return tell


def on_stderr() -> Callable[[str], None]:
    """Progress of a command, beside what it prints."""
    return now_and_then(lambda text: typer.echo(text, err=True))
