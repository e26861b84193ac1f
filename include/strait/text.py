"""Human-readable forms of names and times. Pure."""

import codecs
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

_LISTED_MOST = 5
_RATE = re.compile(r"(\d{1,15}) *([kmg]?)b?(?:/s)?")
_DETAIL = re.compile(r" ?\([^()]*\d[^()]*\)")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}


def printable(name: str) -> str:
    """Return an external name with non-printable characters escaped, so that none moves a terminal's cursor or breaks a
    line."""
    return name if name.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def printable_lines(text: str) -> str:
    """Return a text escaped as by `printable`, with its line breaks kept."""
    return text if text.isprintable() else "\n".join(map(printable, text.splitlines()))


def listed(items: Sequence[str]) -> str:
    """Return the first items, and how many more there are."""
    more = len(items) - _LISTED_MOST
    return ", ".join(items[:_LISTED_MOST]) + (f" and {more:,} more" if more > 0 else "")


def plural(count: int, one: str, many: str = "") -> str:
    """Return a number with its noun, and with a verb if that follows: ``plural(1, "topic")`` is `1 topic`,
    ``plural(2_000, "topic is", "topics are")`` is `2,000 topics are`. ``many``: default by the rules of English."""
    return f"{count:,} {one if count == 1 else many or _many(one)}"


def _many(one: str) -> str:
    if one.endswith("y") and one[-2:-1] not in "aeiou":
        return f"{one[:-1]}ies"
    return f"{one}es" if one.endswith(("s", "x", "ch", "sh")) else f"{one}s"


class Readable(NamedTuple):
    """A record's bytes as human-readable text. ``size``: number of all bytes, of which ``text`` has the first ``shown``."""

    text: str
    encoding: Literal["utf-8", "hex"]
    size: int
    shown: int


def readable(data: bytes | None, most_bytes: int) -> Readable | None:
    """Return the first bytes of a key, value or header: as text if they are UTF-8, else in hexadecimal; None for null."""
    if data is None:
        return None
    first = data[:most_bytes]
    decoder = codecs.getincrementaldecoder("utf-8")()  # leaves out a character that is cut off
    try:
        text = decoder.decode(first, final=len(first) == len(data))
    except UnicodeDecodeError:
        return Readable(first.hex(), "hex", len(data), len(first))
    return Readable(text, "utf-8", len(data), len(first) - len(decoder.getstate()[0]))


def without_numbers(text: str) -> str:
    """Return a text without its numbers and its parenthesized details that contain any, such as durations, so that two
    occurrences of one event are equal."""
    return _NUMBER.sub("#", _DETAIL.sub("", text))


def utc(time_ms: int) -> str:
    """Return a time in milliseconds since 1970 as human-readable UTC."""
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def duration(seconds: float) -> str:
    """Return a duration with at most two units, as text: `42 s`, `58 min`, `1 h 58 min`, `3 d 1 h`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    parts = (
        (minutes // 60, "h", minutes % 60, "min") if minutes < 1440 else (minutes // 1440, "d", minutes // 60 % 24, "h")
    )
    return " ".join(f"{count} {unit}" for count, unit in zip(parts[::2], parts[1::2], strict=True) if count)


def figure(value: float, decimals: int = 0) -> str:
    """Return a measured number that is not negative as text. One below 1 has two digits regardless of ``decimals``, so that
    only 0 is shown as 0: `1,234`, `12.3`, `0.034`."""
    if value >= 1 or not value:
        return f"{value:,.{decimals}f}"
    return f"{value:.2g}" if value >= 0.001 else "<0.001"


def data_size(count: float) -> str:
    """Return a number of bytes with its unit, each 1,000 times the one before: `512 B`, `34 kB`, `1.2 GB`."""
    units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while count >= 999.5 and len(units) > 1:
        count /= 1000
        units.pop(0)
    return f"{figure(count, int(units[0] != 'B' and count < 99.95))} {units[0]}"


def bytes_per_second(text: str) -> int:
    """Parse a rate such as ``50MB/s``, ``2g`` or a number of bytes; "" means 0. Raises ValueError."""
    found = _RATE.fullmatch(text.strip().lower())
    if text and found is None:
        raise ValueError(f"{text!r} is not a rate such as 50MB/s")
    return int(found[1]) * _BYTES[found[2]] if found else 0
