"""The numbers of the records that a repair reads from a log or writes to it. Pure.

Consumer groups commit offsets during a repair, so it must know the equivalent of every offset afterwards, not only of those that were
committed when it started.
"""

from array import array
from bisect import bisect_right
from dataclasses import dataclass


class Numbers:
    """The numbers of a log's records, in order. Holds 16 bytes for each gap between their offsets, so that the numbers of a
    large topic fit into memory."""

    def __init__(self, first: int = 0) -> None:
        """``first``: the number of the first record."""
        self._end = first
        self._offsets, self._numbers = array("q"), array("q")

    def add(self, offset: int) -> None:
        """Add the next record."""
        if not self._offsets or offset - self._offsets[-1] != self._end - self._numbers[-1]:
            self._offsets.append(offset)
            self._numbers.append(self._end)
        self._end += 1

    def at(self, offset: int) -> int:
        """Return the number of the first record at this offset or after it; after the last record, the next number."""
        found = bisect_right(self._offsets, offset) - 1
        following = self._numbers[found + 1] if found + 1 < len(self._numbers) else self._end
        return following if found < 0 else min(following, self._numbers[found] + offset - self._offsets[found])

    def offset(self, number: int) -> int | None:
        """Return the offset of a record; None if there is no record with this number."""
        found = bisect_right(self._numbers, number) - 1
        return None if found < 0 or number >= self._end else self._offsets[found] + number - self._numbers[found]


@dataclass(frozen=True)
class Equivalents:
    """The equivalents of one partition's offsets in the new topic.

    Attributes:
        copy_to, source_from: the old copy's records before this offset were copied from there, and those from this offset on
            from the source.
        old, source, new: of the records of the old copy, of the source and of the new topic; a record that was copied has
            its number in the new topic, too.
        end: the new partition's end.
    """

    copy_to: int
    source_from: int
    old: Numbers
    source: Numbers
    new: Numbers
    end: int

    def of_old(self, offset: int) -> int:
        """Return the equivalent of an offset of the old copy, up to ``copy_to``."""
        return self._offset(self.old.at(offset))

    def of_source(self, offset: int) -> int:
        """Return the equivalent of an offset of the source."""
        return self._offset(self.source.at(offset))

    def _offset(self, number: int) -> int:
        found = self.new.offset(number)
        return self.end if found is None else found
