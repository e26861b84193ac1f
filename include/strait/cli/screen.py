"""What a command prints, drawn anew in place on a terminal, without flicker, until Ctrl-C."""

import io
import logging
import signal
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress

from rich.console import Console
from rich.live import Live
from rich.text import Text


def keep_showing(draw: Callable[[], None], title: str, seconds: float) -> None:
    """Draw again and again until Ctrl-C. What the terminal showed before comes back at the end.

    Into a pipe, what is drawn is written one after another.

    Args:
        draw: prints to standard output. What it raises ends the screen.
        seconds: between two drawings.
    """
    with suppress(KeyboardInterrupt):
        if not sys.stdout.isatty():
            while True:
                draw()
                sys.stdout.flush()
                time.sleep(seconds)
        _on_terminal(draw, title, seconds)


def _on_terminal(draw: Callable[[], None], title: str, seconds: float) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the terminal is put back
    logging.getLogger("strait").setLevel(logging.CRITICAL)  # a link that is away is in what is drawn
    console = Console(highlight=False, markup=False, emoji=False)
    # Nothing is refreshed between two drawings: standard output is redirected in one.
    live = Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    with live:
        while True:
            drawn = _Drawn()
            with redirect_stdout(drawn):
                draw()
            head = f"{title}  {time.strftime('%H:%M:%S')}, every {seconds:g} s, Ctrl-C ends"
            live.update(_cropped([head, *drawn.getvalue().splitlines()], console.height), refresh=True)
            time.sleep(seconds)


class _Drawn(io.StringIO):
    """Takes colours and the terminal's width, as the terminal does."""

    def isatty(self) -> bool:
        return True


def _cropped(lines: list[str], height: int) -> Text:
    if len(lines) > height:
        left_out = len(lines) - height + 1
        lines = [*lines[: height - 1], f"... {left_out} more lines"]
    text = Text.from_ansi("\n".join(lines))
    text.no_wrap = True
    return text
