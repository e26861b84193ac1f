"""Common parts of the page's responses. Pure."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

Data = dict[str, Any]
MOST_ROWS = 200

Row = TypeVar("Row")


class Seen(Protocol):
    """The latest observation of a watch."""

    @property
    def error(self) -> str: ...


def looked(seen: Seen | None) -> Data:
    """Return whether the first observation is still pending, and the error of the latest one; "" if it succeeded."""
    return {"looking": seen is None, "error": "" if seen is None else seen.error}


def some(rows: Sequence[Row], offset: int, limit: int) -> Sequence[Row]:
    """Return one page of the rows: from ``offset``, at most ``limit`` and never more than `MOST_ROWS`."""
    return rows[offset : offset + min(limit, MOST_ROWS)]
