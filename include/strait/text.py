"""How names and times are written for people. Pure."""

from datetime import UTC, datetime


def printable(name: str) -> str:
    """A name of others as text: nothing in it moves a terminal's cursor or breaks a line."""
    return name if name.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def printable_lines(text: str) -> str:
    """The same, but it may have lines."""
    return text if text.isprintable() else "\n".join(map(printable, text.splitlines()))


def utc(time_ms: int) -> str:
    """A time for people."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
