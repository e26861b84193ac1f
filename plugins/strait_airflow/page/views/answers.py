"""Common parts of the page's responses."""

import time
from collections.abc import Sequence
from typing import Any, TypeVar

from strait_airflow.page.watches.polled import Seen

Data = dict[str, Any]
MOST_ROWS = 200

Row = TypeVar("Row")


def looked(seen: Seen[Any] | None) -> Data:
    """Return whether the first observation is still pending, the error of the latest one ("" if it succeeded), and the
    age of the data."""
    if seen is None:
        return {"looking": True, "error": "", "age_seconds": None, "every_seconds": None}
    age = round(time.monotonic() - seen.at, 1)
    return {"looking": False, "error": seen.error, "age_seconds": age, "every_seconds": seen.every_seconds}


def some(rows: Sequence[Row], offset: int, limit: int) -> Sequence[Row]:
    """Return one page of the rows: from ``offset``, at most ``limit`` and never more than `MOST_ROWS`."""
    return rows[offset : offset + min(limit, MOST_ROWS)]
