"""The only way to a terminal. Names, reasons and errors come from brokers, state topics and other users, so all printed
text has its control characters escaped: they could move the cursor, set the clipboard or hide text.

Ruff rejects `typer.echo`, `typer.confirm` and rich's `Console` elsewhere in the commands.
"""

import logging
import sys

import typer

from strait.text import printable_lines

_TAB = "    "


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text with its line breaks kept and every other control character escaped."""
    raw = str(text)
    shown = printable_lines(raw.replace("\t", _TAB)) + ("\n" if raw.endswith("\n") else "")
    typer.echo(shown, err=err, nl=nl)


def confirm(question: str, *, err: bool = False) -> None:
    """Ask a question, and exit unless the answer is yes. Without a terminal, the error names the option."""
    try:
        agreed = typer.confirm(printable_lines(question), err=err)
    except typer.Abort:
        if not sys.stdin.isatty():
            echo("\nerror: the question needs a terminal (use --yes)", err=True)
        raise
    if not agreed:
        raise typer.Abort


def write(text: str) -> None:
    """Write a text to standard output: unchanged into a file or a pipe, for programs."""
    if sys.stdout.isatty():
        echo(text, nl=False)
    else:
        sys.stdout.write(text)


def write_json(text: str) -> None:
    """Write a line of JSON to standard output, also into a pipe. The characters that JSON allows in a text and a terminal
    obeys are escaped in JSON's way, so the values stay the same."""
    sys.stdout.write((text if text.isprintable() else "".join(map(_escaped, text))) + "\n")
    sys.stdout.flush()


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


class PrintableFormatter(logging.Formatter):
    """Formats log lines for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))
