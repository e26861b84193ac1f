"""Redraws a command's output in place on a terminal, without flicker, until Ctrl-C."""

import io
import logging
import signal
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout, suppress

from rich.live import Live
from rich.text import Text

from strait.cli.consoles import PrintableConsole
from strait.text import plural


def keep_showing(draw: Callable[[], None], title: str, seconds: float) -> None:
    """Draw repeatedly until Ctrl-C, then restore the terminal's previous content.

    Into a pipe, the drawings are written one after another.

    Args:
        draw: prints to standard output. An exception that it raises ends the screen.
        seconds: pause between two drawings.
    """
    with suppress(KeyboardInterrupt):
        if not sys.stdout.isatty():
            while True:
                draw()
                sys.stdout.flush()
                time.sleep(seconds)
        _on_terminal(draw, title, seconds)


def _on_terminal(draw: Callable[[], None], title: str, seconds: float) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that the terminal is restored
    logging.getLogger("strait").setLevel(logging.CRITICAL)  # the output itself shows an unreachable link
    console = PrintableConsole()
    # No automatic refresh: standard output is redirected during a drawing.
    live = Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    with live:
        while True:
            drawn = _Drawn()
            with redirect_stdout(drawn):
                draw()
            head = f"{title}  {time.strftime('%H:%M:%S')}, every {seconds:g} s, Ctrl-C ends"
            live.update(_cropped(_wrapped(f"{head}\n{drawn.getvalue()}", console), console.height), refresh=True)
            time.sleep(seconds)


class _Drawn(io.StringIO):
    """Captures output with colors and the terminal's width, since it reports itself as a terminal."""

    def isatty(self) -> bool:
        return True


def _wrapped(drawing: str, console: PrintableConsole) -> list[Text]:
    """Return the lines of a drawing with their colors, none wider than the terminal."""
    lines = (Text.from_ansi(line) for line in drawing.splitlines())
    return [part for line in lines for part in (line.wrap(console, console.width) or [line])]


def _cropped(lines: list[Text], height: int) -> Text:
    if len(lines) > height:
        left_out = len(lines) - height + 1
        lines = [*lines[: height - 1], Text(f"... {plural(left_out, 'more line')}")]
    text = Text("\n").join(lines)
    text.no_wrap = True
    return text
