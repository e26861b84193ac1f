"""Shows what a benchmark is doing: bars on a terminal, plain lines elsewhere. Always on standard error."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

Advance = Callable[[float], None]

_SECONDS_BETWEEN_LINES = 10.0


class Steps:
    """The steps of one run, each shown from its start to its end. Used as a context manager."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )

    def __enter__(self) -> "Steps":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    @contextmanager
    def step(self, what: str, total: float = 1.0) -> Iterator[Advance]:
        """Yields a function that takes how much of ``total`` is done so far."""
        started = time.monotonic()
        task = self._bars.add_task(what, total=total)
        shown = started
        if self._bars.disable:
            self._line(f"{what} …")

        def advance(done: float) -> None:
            nonlocal shown
            self._bars.update(task, completed=done)
            if self._bars.disable and time.monotonic() - shown >= _SECONDS_BETWEEN_LINES:
                shown = time.monotonic()
                self._line(f"{what}: {min(done / total, 1):.0%}")

        yield advance
        self._bars.update(task, completed=total)
        if self._bars.disable:
            self._line(f"{what}: done in {time.monotonic() - started:.1f} s")

    def note(self, text: str) -> None:
        """A line that stays."""
        self._line(text)

    def _line(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)
