"""Memory for the copy, taken before the copier starts and given back as the copy grows.

A virtual machine gives memory back to its host when nobody uses it, and gets it again with the first touch, at a second
or so for each GB: that would be counted as time of whoever writes most bytes a second. A server has its memory.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

_PIECE = bytes(1 << 20)


class Ballast:
    """A file that takes so many bytes of the page cache."""

    def __init__(self, descriptor: int, size_bytes: int) -> None:
        self._descriptor = descriptor
        self._size_bytes = size_bytes

    def keep(self, share: float) -> None:
        """Give back all but this share of it."""
        os.ftruncate(self._descriptor, int(self._size_bytes * max(0.0, share)))


@contextmanager
def ballast(directory: Path, size_bytes: int) -> Iterator[Ballast]:
    """At most a quarter of the memory that is free; gone at the end of the block. Raises OSError."""
    size_bytes = min(size_bytes, psutil.virtual_memory().available // 4)
    path = directory / "ballast"
    with path.open("wb") as file:
        path.unlink()  # whatever happens, it is gone with this process
        for _ in range(size_bytes // len(_PIECE)):
            file.write(_PIECE)
        file.flush()
        yield Ballast(file.fileno(), size_bytes)
