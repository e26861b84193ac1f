"""Names the differences between two logs, from the records that have no equal counterpart. Pure."""

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from strait.audit.feed import Rows
from strait.audit.findings import NOWHERE, Kind
from strait.wire.digests import Array

MOST_LEFT = 100_000
"""Records without a counterpart that are kept until the end, to find those that changed places."""


class One(NamedTuple):
    """A record of one side. ``doubles``: the source has an equal one close by, or one of the same number. ``left_out``: the
    source offset of the record of its number, which the topic's transformation leaves out; -1: there is none."""

    offset: int
    digest: bytes
    doubles: bool = False
    left_out: int = NOWHERE


class Named(NamedTuple):
    """A difference of one record; -1: it has no offset there."""

    kind: Kind
    source: int
    copy: int


class Leftovers:
    """Collects the records without an equal counterpart, and names the differences at the end: a record that is missing
    at one place and extra at another has changed places."""

    def __init__(self) -> None:
        self._lost: list[One] = []
        self._more: list[One] = []
        self._pairs: list[tuple[One, One]] = []

    @property
    def are_many(self) -> bool:
        return len(self._lost) + len(self._more) + len(self._pairs) > MOST_LEFT

    def lose(self, rows: Rows, i: int) -> None:
        """Add a record of the source that the destination lacks at its place."""
        self._lost.append(_one(rows, i))

    def gain(self, rows: Rows, j: int, *, doubles: bool, left_out: int = NOWHERE) -> None:
        """Add a record of the destination that the source lacks at its place."""
        self._more.append(_one(rows, j)._replace(doubles=doubles, left_out=left_out))

    def pair(self, here: Rows, i: int, there: Rows, j: int) -> None:
        """Add two records that belong together and differ."""
        self._pairs.append((_one(here, i), _one(there, j)))

    def named(self) -> Iterator[Named]:
        """Yield the differences, and forget them."""
        moved = _moved([*self._lost, *(one for one, _ in self._pairs)], [*self._more, *(one for _, one in self._pairs)])
        arrived = set(moved.values())
        missing = [one.offset for one in self._lost if one.offset not in moved]
        more = [one for one in self._more if one.offset not in arrived]
        for one, other in self._pairs:
            match one.offset in moved, other.offset in arrived:
                case False, False:
                    yield Named("different", one.offset, other.offset)
                case False, True:
                    missing.append(one.offset)
                case True, False:
                    more.append(other)
        yield from (Named("missing", offset, NOWHERE) for offset in sorted(missing))
        yield from (Named("duplicate" if one.doubles else "extra", one.left_out, one.offset) for one in sorted(more))
        yield from (Named("reordered", *places) for places in sorted(moved.items()))
        self.__init__()  # type: ignore[misc]


def _one(rows: Rows, at: int) -> One:
    return One(int(rows.offsets[at]), rows.digests[at].tobytes())


def _moved(here: list[One], there: list[One]) -> dict[int, int]:
    """Return the source offsets of records that the destination has elsewhere, each with the offset there."""
    places: defaultdict[bytes, list[int]] = defaultdict(list)
    for one in sorted(there, reverse=True):
        places[one.digest].append(one.offset)
    found = {}
    for one in sorted(here):
        same = places.get(one.digest)
        if same:
            found[one.offset] = same.pop()
    return found


class Paired(NamedTuple):
    """Two rows of records by number: positions of unequal ones, and of those that one side lacks."""

    pairs: list[tuple[int, int]]
    lost: list[int]
    more: list[int]


def paired(source: Rows, copy: Rows) -> Paired:
    """Compare records by number. Numbers ascend on both sides."""
    if len(source) == len(copy) and (source.numbers == copy.numbers).all():
        unequal = np.flatnonzero(source.digests != copy.digests).tolist()
        return Paired([(at, at) for at in unequal], [], [])
    _, here, there = np.intersect1d(source.numbers, copy.numbers, assume_unique=True, return_indices=True)
    unequal = source.digests[here] != copy.digests[there]
    pairs = list(zip(here[unequal].tolist(), there[unequal].tolist(), strict=True))
    return Paired(pairs, _rest(len(source), here), _rest(len(copy), there))


def _rest(count: int, taken: Array) -> list[int]:
    left = np.ones(count, bool)
    left[taken] = False
    return [int(at) for at in np.flatnonzero(left)]


def contents(*digests: Array) -> set[bytes]:
    """Return the digests as a set."""
    return {one.tobytes() for column in digests for one in column}
