"""Hours of the day in a time zone, during which something is allowed. Pure.

Hours are the wall-clock hours of the zone: when its clocks are changed, an interval is as much longer or shorter.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from math import ceil
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import AfterValidator, Field

from strait.config.validation import did_you_mean

_SPAN = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|(24):(00))")
_MINUTE_MS = 60_000
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS
_LONGEST_DAYS = 2
"""A daily span starts within this many days, even if one day does not have that hour."""


def checked_span(text: str) -> str:
    """Return the text of a span. Raises ValueError."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a span of hours such as '22:00-06:00'")
    begin, end = _minutes(text)
    if begin == end:
        raise ValueError(f"{text!r} is empty: its two times are the same")
    return text


def checked_zone(name: str) -> str:
    """Return the name of a time zone. Raises ValueError."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = dict.fromkeys(available_timezones())
        raise ValueError(f"{name!r} is not an IANA time zone{did_you_mean(name, known)}") from None
    return name


Span = Annotated[str, Field(max_length=11), AfterValidator(checked_span)]
"""A span of hours, such as `22:00-06:00`; it may end on the next day."""
Zone = Annotated[str, Field(max_length=64), AfterValidator(checked_zone)]
"""The IANA name of a time zone."""


@dataclass(frozen=True, slots=True)
class Hours:
    """Spans of hours of every day. Times are Unix times in milliseconds."""

    spans: tuple[str, ...]
    zone: str

    def __str__(self) -> str:
        return f"{', '.join(self.spans)} {self.zone}"

    def is_open(self, at_ms: int) -> bool:
        """Return whether the time is within one of the spans."""
        local = datetime.fromtimestamp(at_ms / 1000, ZoneInfo(self.zone))
        minute = local.hour * 60 + local.minute
        return any(
            begin <= minute < end if begin < end else minute >= begin or minute < end
            for begin, end in map(_minutes, self.spans)
        )

    def next_change(self, at_ms: int) -> int | None:
        """Return when the hours start next or, within them, when they end; None: they never do."""
        now = self.is_open(at_ms)
        before = at_ms
        for boundary in self._boundaries(at_ms):
            if self.is_open(boundary) is not now:
                return self._first(before, boundary, open_there=not now)
            before = boundary
        return None

    def elapsing(self, at_ms: int) -> Callable[[float], float]:
        """Return a function that converts seconds within these hours, from ``at_ms`` on, to all seconds that pass
        meanwhile. It assumes that each day is like the next 24 hours."""
        period_ms = _DAY_MS
        while not (spans := list(self._open_spans(at_ms, at_ms + period_ms))):
            period_ms += _DAY_MS  # its clocks skip the only hours of that day
        open_ms = sum(end - begin for begin, end in spans)

        def elapsed(seconds: float) -> float:
            if seconds <= 0:
                return 0.0
            periods = ceil(seconds * 1000 / open_ms) - 1
            left_ms = seconds * 1000 - periods * open_ms
            for begin, end in spans:
                if left_ms <= end - begin:
                    break
                left_ms -= end - begin
            return (periods * period_ms + begin - at_ms + left_ms) / 1000

        return elapsed

    def _open_spans(self, since_ms: int, until_ms: int) -> Iterator[tuple[int, int]]:
        while since_ms < until_ms:
            change = min(until_ms, self.next_change(since_ms) or until_ms)
            if self.is_open(since_ms):
                yield since_ms, change
            since_ms = change

    def _boundaries(self, at_ms: int) -> Iterator[int]:
        """Yield the next times, in order, at which a span starts or ends, or clocks are changed; those of hours that a
        day does not have may be late."""
        zone = ZoneInfo(self.zone)
        today = datetime.fromtimestamp(at_ms / 1000, zone).date()
        days: Iterable[date] = (today + timedelta(days=number) for number in range(-1, _LONGEST_DAYS + 1))
        minutes = {minute % (24 * 60) for span in self.spans for minute in _minutes(span)}
        found = {
            round(
                datetime(day.year, day.month, day.day, *divmod(minute, 60), tzinfo=zone, fold=fold).timestamp() * 1000
            )
            for day in days
            for minute in minutes
            for fold in (0, 1)
        }
        found.update(_clock_changes(zone, at_ms, max(found, default=at_ms)))
        yield from sorted(boundary for boundary in found if boundary > at_ms)

    def _first(self, closed: int, opened: int, *, open_there: bool) -> int:
        """Return the first minute after ``closed``, and up to ``opened``, at which it is open, or closed."""
        last, first = closed // _MINUTE_MS, opened // _MINUTE_MS
        while first - last > 1:
            middle = (first + last) // 2
            if self.is_open(middle * _MINUTE_MS) is open_there:
                first = middle
            else:
                last = middle
        return first * _MINUTE_MS


def _clock_changes(zone: ZoneInfo, since_ms: int, until_ms: int) -> Iterator[int]:
    """Yield the minutes at which the zone's clocks are changed: the minute after may be within other hours."""

    def offset(minute: int) -> timedelta | None:
        return datetime.fromtimestamp(minute * 60, zone).utcoffset()

    for hour in range(since_ms // _HOUR_MS, until_ms // _HOUR_MS + 1):
        for minute in range(60 * hour, 60 * (hour + 1)) if offset(60 * hour) != offset(60 * (hour + 1)) else ():
            if offset(minute) != offset(minute + 1):
                yield (minute + 1) * _MINUTE_MS


def clock(at_ms: int, zone: str) -> str:
    """Return a time as human-readable text, on the clock of a time zone."""
    local = datetime.fromtimestamp(at_ms / 1000, ZoneInfo(zone))
    utc = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{local:%Y-%m-%d %H:%M} {zone} ({utc:%H:%M} UTC)"


def _minutes(span: str) -> tuple[int, int]:
    """Return the minutes of the day at which a span starts and ends."""
    begin, end = (int(time[:2]) * 60 + int(time[3:]) for time in span.split("-"))
    return begin, end
