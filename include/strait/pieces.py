"""Splitting of items into lists of bounded size, for requests that a broker accepts. Pure."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def pieces(items: Iterable[Item], most: int, size_of: Callable[[Item], int] = lambda _: 1) -> Iterator[list[Item]]:
    """Yield the items in order, in lists of total size ``most`` or less; a larger item is alone in its list."""
    piece: list[Item] = []
    size = 0
    for item in items:
        more = size_of(item)
        if piece and size + more > most:
            yield piece
            piece, size = [], 0
        piece.append(item)
        size += more
    if piece:
        yield piece
