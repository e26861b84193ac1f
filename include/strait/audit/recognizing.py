"""Recognizes batches in bytes of a log that may be damaged. Pure.

No checksum covers the base offset, the length and the format in a batch's header. If one of them is wrong, the batches that
follow are recognized by their own bytes.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from strait.audit.feed import Hole, Item
from strait.wire.batch import CRC_FROM, HEADER_BYTES, PREFIX_BYTES, Batch, parse

_FRONT = Struct(">qi4xb")
_LEAST = HEADER_BYTES - PREFIX_BYTES
_LEAST_OLD = 14
_NEAR = 1 << 24
"""Offsets in which the next batch is searched for."""


class _Front(NamedTuple):
    """The fields of a header that no checksum covers."""

    base: int
    length: int
    magic: int


class Recognized(NamedTuple):
    """Batches and holes in order. ``next``: the offset after them. ``doubtful``: the bytes that follow are no batch."""

    items: list[Item]
    next: int
    doubtful: bool


def recognize(data: memoryview, at: int, readable: int, *, inside: bool, suspect: int = -1) -> Recognized:
    """Return the batches in these bytes from an offset on, and the holes between them. A batch that is cut short at their end is left to the next reply.

    Args:
        readable: the end of the log.
        inside: the first batch may start before the offset; else it starts there or, after compaction, later.
        suspect: a batch that starts here or before, and seems to be cut short, has a damaged length.
    """
    return _Reader(data, at, readable, suspect).read(inside=inside)


class _Reader:
    def __init__(self, data: memoryview, at: int, readable: int, suspect: int) -> None:
        self._data = data
        self._readable = readable
        self._suspect = suspect
        self._at = 0
        self._expected = at
        self._items: list[Item] = []

    def read(self, *, inside: bool) -> Recognized:
        while (front := self._front(self._at)) is not None:
            starts = inside and not self._items and front.base <= self._expected
            if front.magic in (0, 1) and front.length >= _LEAST_OLD:
                if not self._take_old(front):
                    break
            elif not self._fits(front, -1 if starts else self._expected):
                if not self._skip():
                    return Recognized(self._items, self._expected, doubtful=True)
            elif not self._take(front, starts=starts):
                break
        return Recognized(self._items, self._expected, doubtful=False)

    def _take_old(self, front: _Front) -> bool:
        end = self._at + PREFIX_BYTES + front.length
        if end > len(self._data):
            return False
        view = self._data[self._at : end]
        batch = Batch(front.base, front.length, -1, front.magic, 0, 0, 0, -1, -1, -1, -1, -1, 0, view)
        self._accept(batch, max(front.base + 1, self._expected))
        return True

    def _take(self, front: _Front, *, starts: bool) -> bool:
        """Take the batch here, or the hole in its place. Return False if the next reply must have it, with more bytes."""
        end = self._at + PREFIX_BYTES + front.length
        if end > len(self._data):
            return self._skip() if self._expected <= self._suspect or not self._items else False
        batch, following = parse(self._data[self._at : end]), self._front(end)
        least = 0 if starts else self._expected + 1
        follows = following is not None and self._fits(following, least)
        placed = starts or front.base == self._expected
        if placed and follows and following is not None and following.base >= batch.next_offset:
            if (not batch.whole or following.base > batch.next_offset) and not _intact(batch):
                batch = _bounded(batch, following.base)
            self._accept(batch, batch.next_offset)
        elif following is None and self._items and self._expected > self._suspect:
            return False
        elif not _intact(batch):
            if follows and following is not None:
                if placed:
                    batch = _bounded(batch, following.base)
                if starts and batch.next_offset <= self._expected:  # by its header alone it holds the first offset
                    self._at = end
                    return True
                self._accept(batch, max(self._expected + 1, following.base if placed else batch.next_offset))
            elif not self._skip():
                batch = _bounded(batch, self._readable)
                self._accept(batch, batch.next_offset)
        elif (
            follows
            and following is not None
            and following.base < batch.next_offset
            and self._agrees(end, placed, starts)
        ):
            self._leave(end, following.base)
        else:
            self._accept(batch, batch.next_offset)
        return True

    def _agrees(self, at: int, placed: bool, starts: bool) -> bool:
        """Return whether the batch at this position, rather than the one before it, has its true base offset."""
        if not placed:
            return True
        front = self._front(at)
        if not starts or front is None or at + PREFIX_BYTES + front.length > len(self._data):
            return False
        batch, following = (
            parse(self._data[at : at + PREFIX_BYTES + front.length]),
            self._front(at + PREFIX_BYTES + front.length),
        )
        return batch.next_offset == (self._readable if following is None else following.base)

    def _accept(self, batch: Batch, following: int) -> None:
        self._items.append(batch)
        self._at += len(batch.view)
        self._expected = following

    def _leave(self, at: int, base: int) -> None:
        """Continue with another batch; the offsets before it are a hole."""
        if base > self._expected:
            self._items.append(Hole(self._expected, base, "damaged"))
        self._at, self._expected = at, max(self._expected, base)

    def _skip(self) -> bool:
        """Continue with the next undamaged batch; return False if there is none in these bytes."""
        for at in self._candidates():
            front = self._front(at)
            if front is None or not self._fits(front, 0) or at + PREFIX_BYTES + front.length > len(self._data):
                continue
            batch = parse(self._data[at : at + PREFIX_BYTES + front.length])
            if batch.next_offset > self._expected and _intact(batch):
                self._leave(at, front.base)
                if front.base < self._expected:  # it holds the first offset
                    self._accept(batch, batch.next_offset)
                return True
        return False

    def _candidates(self) -> Iterator[int]:
        """Yield the positions from here on at which an offset near the expected one may be."""
        whole = bytes(self._data)
        low, high = max(0, self._expected - _NEAR) >> 24, (self._expected + _NEAR) >> 24
        prefixes = [prefix.to_bytes(5, "big") for prefix in range(low, high + 1)]
        at = self._at + 1
        while found := [place for prefix in prefixes if (place := whole.find(prefix, at)) >= 0]:
            yield min(found)
            at = min(found) + 1

    def _front(self, at: int) -> _Front | None:
        return None if at + _FRONT.size > len(self._data) else _Front(*_FRONT.unpack_from(self._data, at))

    def _fits(self, front: _Front, least: int) -> bool:
        return front.magic == 2 and front.length >= _LEAST and least <= front.base < self._readable


def _bounded(batch: Batch, end: int) -> Batch:
    """Return a damaged batch without the numbers in its header that contradict each other or the offset at which the next
    batch starts, or the log ends."""
    if (batch.whole and batch.next_offset <= end) or end <= batch.base_offset:
        return batch
    count = min(end - batch.base_offset, batch.length)
    return batch._replace(last_offset_delta=count - 1, records=count)


def _intact(batch: Batch) -> bool:
    return batch.last_offset_delta >= 0 and crc32c(batch.view[CRC_FROM:]) == batch.crc
