"""What all answers of the page have in common. Pure."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

Data = dict[str, Any]
MOST_ROWS = 200

Row = TypeVar("Row")


class Seen(Protocol):
    """What a watch saw last."""

    @property
    def error(self) -> str: ...


def looked(seen: Seen | None) -> Data:
    """Whether the first look is not over yet, and why the last one failed; "" where it did not."""
    return {"looking": seen is None, "error": "" if seen is None else seen.error}


def some(rows: Sequence[Row], offset: int, limit: int) -> Sequence[Row]:
    """A page of them."""
    return rows[offset : offset + min(limit, MOST_ROWS)]
