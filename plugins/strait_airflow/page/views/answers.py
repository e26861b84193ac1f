"""Common parts of the page's responses."""

import time
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

Data = dict[str, Any]
MOST_ROWS = 200

Row = TypeVar("Row")


class Seen(Protocol):
    """The latest observation of a watch."""

    @property
    def error(self) -> str: ...

    @property
    def at(self) -> float: ...

    @property
    def every_seconds(self) -> float: ...


def looked(seen: Seen | None) -> Data:
    """Return whether the first observation is still pending, the error of the latest one ("" if it succeeded), and the
    age of the data."""
    if seen is None:
        return {"looking": True, "error": "", "age_seconds": None, "every_seconds": None}
    age = round(time.monotonic() - seen.at, 1)
    return {"looking": False, "error": seen.error, "age_seconds": age, "every_seconds": seen.every_seconds}


def some(rows: Sequence[Row], offset: int, limit: int) -> Sequence[Row]:
    """Return one page of the rows: from ``offset``, at most ``limit`` and never more than `MOST_ROWS`."""
    return rows[offset : offset + min(limit, MOST_ROWS)]
