"""Progress of the demo's steps as text: a spinner on a terminal, and always a line for each step."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status

from strait.errors import StraitError


class Steps:
    """Prints the progress to ``console``."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextmanager
    def step(self, text: str) -> Iterator[Status]:
        """Show ``text`` while the step runs, then its result and duration. The yielded status has `update(text)`, which
        changes the text of the spinner."""
        started = time.monotonic()
        with self._console.status(text) as status:
            try:
                yield status
            except (StraitError, KeyboardInterrupt):
                self._console.print(f"[red]✗[/red] {text}", soft_wrap=True)
                raise
        duration = f"[dim]{time.monotonic() - started:.1f} s[/dim]"
        self._console.print(f"[green]✓[/green] {text} {duration}", soft_wrap=True)
