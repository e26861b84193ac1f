"""Figures as text for operators; "-" is unknown. Pure."""

from strait.text import duration, figure, plural

UNKNOWN = "-"


def count(value: float | None) -> str:
    """Return a number; None and negative ones are unknown."""
    return UNKNOWN if value is None or value < 0 else f"{value:,.0f}"


def per_second(value: float | None, decimals: int = 0) -> str:
    """Return a rate, 0 only if nothing was copied; see `figure`. None and negative ones are unknown."""
    return UNKNOWN if value is None or value < 0 else figure(value, decimals)


def megabytes(value: float | None) -> str:
    """Return bytes per second in MB per second; as `per_second`."""
    return per_second(None if value is None else value / 1e6, 1)


def at_least(known: int | None, unknown: int) -> str:
    """Return a total of which ``unknown`` addends are unknown; None: all are."""
    return f">={known:,}" if known and unknown else UNKNOWN if unknown else count(known)


def lasting(seconds: float | None) -> str:
    """Return a duration; tenths of a second if it is short. None and negative ones are unknown."""
    if seconds is None or seconds < 0:
        return UNKNOWN
    return f"{seconds:.1f} s" if seconds < 10 else duration(seconds)


def records_behind(known: int | None, unknown: int) -> str:
    """Return the lag of several partitions as a phrase."""
    if not unknown:
        return f"{UNKNOWN} records behind" if known is None or known < 0 else f"{plural(known, 'record')} behind"
    if known is None:
        return "how many records behind is unknown"
    return f"at least {plural(known, 'record')} behind, {plural(unknown, 'partition')} unknown"
