"""Human-readable forms of names and times. Pure."""

from datetime import UTC, datetime


def printable(name: str) -> str:
    """Return an external name with non-printable characters escaped, so that none moves a terminal's cursor or breaks a
    line."""
    return name if name.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def printable_lines(text: str) -> str:
    """Return a text escaped as by `printable`, with its line breaks kept."""
    return text if text.isprintable() else "\n".join(map(printable, text.splitlines()))


def utc(time_ms: int) -> str:
    """Return a time in milliseconds since 1970 as human-readable UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
