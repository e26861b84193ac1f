"""Progress of the demo's steps, for people: a spinner on a terminal, a line for each step anywhere."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status

from strait.errors import StraitError


class Steps:
    """Writes to ``console``."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def step(self, text: str) -> Iterator[Status]:
        """Show that ``text`` is being done, then that it is, with its duration. What it yields takes `update(text)`."""
        started = time.monotonic()
        with self._console.status(text) as status:
            try:
                yield status
            except (StraitError, KeyboardInterrupt):
                self._console.print(f"[red]✗[/red] {text}")
                raise
        self._console.print(f"[green]✓[/green] {text} [dim]{time.monotonic() - started:.1f} s[/dim]")
