"""Which source record is each record on the destination, by the contents of both logs. Pure.

A link copies every record once and in order. So contents that occur exactly once on either side belong together: they
are *anchors*. Between two anchors with equally many records on both sides, each record follows from its place. Every
other stretch is decided record by record, and a record counts only if no other assignment in order is possible.

Batches are compared first, since a batch that was passed on has equal bytes on both sides. One is an anchor only if the
one before or after it is at the same distance, counted in records: a single batch may equal another one by chance, if
the batch that it was copied from was split or merged. Only stretches that batches leave open need their records read.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

EXPIRED = "the source no longer holds these records"
AMBIGUOUS = "several assignments are possible: identical records, or records that were not replicated"
DIFFERENT = "the source does not hold these records in this order"
COMPACTED = "a topic is compacted, and the contents of these records are not unique on both sides"

EQUAL_AROUND = 100
"""Without timestamps so many records before and after one must be equal, too, where its original may have expired."""


class Item(NamedTuple):
    """A batch or a record of a log.

    Attributes:
        first: offset of its first record.
        records: number of its records that count.
        digest: of its contents; None: they cannot be compared with the other side's.
        number: on the destination the number of its first record among those of the link.
        whole: it has a record at each of its offsets.
        end: the offset after it.
    """

    first: int
    records: int
    digest: bytes | None
    number: int = -1
    whole: bool = True
    end: int = -1


class Stretch(NamedTuple):
    """Records from number ``number`` on are at consecutive offsets from ``source`` and from ``copy`` on."""

    number: int
    source: int
    copy: int
    records: int


class Unknown(NamedTuple):
    """Records from number ``number`` on, at destination offsets [``copy_from``, ``copy_to``), and why their source
    offsets are unknown."""

    number: int
    records: int
    copy_from: int
    copy_to: int
    reason: str


class Open(NamedTuple):
    """A stretch that batches do not decide: offsets [from, to) on either side. ``after``, ``before``: the record before
    it, or after it, is an anchor, and no number is missing between the two."""

    source_from: int
    source_to: int
    copy_from: int
    copy_to: int
    after: bool
    before: bool


class Rules(NamedTuple):
    """What is known of the logs.

    Attributes:
        dense: neither topic is compacted: records that were copied are missing only at the beginning of a log.
        complete: the source still holds its very first record.
        timed: copies have their records' timestamps. Without them, equal contents may well be those of two records.
        lossless: no record that the source holds is known to have been passed over, and none to have been copied again.
    """

    dense: bool = True
    complete: bool = True
    timed: bool = True
    lossless: bool = True


def match_batches(source: Sequence[Item], copy: Sequence[Item], rules: Rules) -> tuple[list[Stretch], list[Open]]:
    """Assign whole batches.

    Args:
        source: batches with committed records that were to be copied, in order.
        copy: batches of the link on the destination, in order, their numbers ascending.

    Returns:
        What is exact, in order, and the stretches whose records must be compared.
    """
    found: list[Stretch] = []
    undecided: list[Open] = []
    anchors = _beside_each_other(source, copy, _anchors(source, copy)) if rules.dense else []
    for part in _parts(source, copy, anchors):
        theirs, ours = source[part.source], copy[part.copy]
        counted = part.after and part.before and _consecutive(ours)
        if counted and _whole(theirs) and _whole(ours) and _records(theirs) == _records(ours):
            found += _side_by_side(theirs, ours)
        elif ours:
            source_from, source_to = (theirs[0].first, theirs[-1].end) if theirs else (0, 0)
            undecided.append(Open(source_from, source_to, ours[0].first, ours[-1].end, part.after, part.before))
        if part.anchor is not None:
            there, here = (items[at] for items, at in zip((source, copy), part.anchor, strict=True))
            found.append(Stretch(here.number, there.first, here.first, here.records))
    return found, undecided


def match_records(
    source: Sequence[Item], copy: Sequence[Item], at: Open, rules: Rules
) -> tuple[list[Stretch], list[Unknown]]:
    """Assign the records of a stretch: what is exact, and what stays unknown, both in order."""
    found: list[Stretch] = []
    unknown: list[Unknown] = []
    anchors = _anchors(source, copy)
    if not rules.timed and not rules.dense:
        anchors = []  # the record that was copied may be gone, and an equal one have come later
    elif not (rules.timed or rules.complete or at.after):
        anchors = _proven(source, copy, anchors)
    for part in _parts(source, copy, anchors, at.after, at.before):
        theirs, ours = source[part.source], copy[part.copy]
        places, reason = _assigned(theirs, ours, part, rules)
        for item, place in zip(ours, places, strict=True):
            if place is None:
                unknown.append(Unknown(item.number, 1, item.first, item.end, reason))
            else:
                found.append(Stretch(item.number, theirs[place].first, item.first, 1))
        if part.anchor is not None:
            there, here = (items[at] for items, at in zip((source, copy), part.anchor, strict=True))
            found.append(Stretch(here.number, there.first, here.first, 1))
    return joined(found), _joined_unknown(unknown)


def joined(stretches: Sequence[Stretch]) -> list[Stretch]:
    """The same, those put together that continue each other on both sides."""
    found: list[Stretch] = []
    for one in stretches:
        last = found[-1] if found else None
        if last and (one.number, one.source, one.copy) == tuple(start + last.records for start in last[:3]):
            found[-1] = last._replace(records=last.records + one.records)
        else:
            found.append(one)
    return found


class _Part(NamedTuple):
    """What lies between two anchors. ``after``, ``before``: as in `Open`. ``anchor``: the indices of the one after
    it."""

    source: slice
    copy: slice
    after: bool
    before: bool
    anchor: tuple[int, int] | None


def _parts(
    source: Sequence[Item],
    copy: Sequence[Item],
    anchors: Sequence[tuple[int, int]],
    after: bool = False,
    before: bool = False,
) -> Iterator[_Part]:
    there = here = 0
    for one, other in anchors:
        before_it = other == 0 or _follows(copy[other - 1], copy[other])
        yield _Part(slice(there, one), slice(here, other), after, before_it, (one, other))
        there, here = one + 1, other + 1
        after = here == len(copy) or _follows(copy[other], copy[here])
    yield _Part(slice(there, len(source)), slice(here, len(copy)), after, before, None)


def _anchors(source: Sequence[Item], copy: Sequence[Item]) -> list[tuple[int, int]]:
    """Indices of items whose contents occur once on either side, in the same order on both. One that contradicts
    another's order does not count, nor does that other one."""
    times_there, times_here = (Counter(item.digest for item in items) for items in (source, copy))
    place = {item.digest: at for at, item in enumerate(source) if times_there[item.digest] == 1}
    pairs = [
        (place[item.digest], at)
        for at, item in enumerate(copy)
        if item.digest is not None and times_here[item.digest] == 1 and item.digest in place
    ]
    before = list(accumulate((there for there, _ in pairs), max, initial=-1))
    behind = list(accumulate((there for there, _ in reversed(pairs)), min, initial=len(source)))[::-1]
    return [pair for at, pair in enumerate(pairs) if before[at] < pair[0] < behind[at + 1]]


def _beside_each_other(
    source: Sequence[Item], copy: Sequence[Item], anchors: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Those that have a neighbor at the same distance, counted in records."""
    counted = [0, *accumulate(item.records for item in source)]
    distances = [None, *(counted[there] - copy[here].number for there, here in anchors), None]
    return [pair for at, pair in enumerate(anchors, 1) if distances[at] in (distances[at - 1], distances[at + 1])]


def _proven(source: Sequence[Item], copy: Sequence[Item], anchors: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where the copied record may have expired and an equal one have come later: from the first one on that has a
    neighbor at the same distance, and around which all that both sides hold is equal, as far as `EQUAL_AROUND`."""
    for first, ((there, here), (one, other)) in enumerate(pairwise(anchors)):
        if there - here == one - other:
            back = min(there, here, EQUAL_AROUND)
            ahead = min(len(source) - there, len(copy) - here, EQUAL_AROUND)
            ours = copy[here - back : here + ahead]
            theirs = source[there - back : there + ahead]
            if _consecutive(ours) and all(a.digest == b.digest for a, b in zip(theirs, ours, strict=True)):
                return list(anchors[first:])
    return []


def _assigned(
    theirs: Sequence[Item], ours: Sequence[Item], part: _Part, rules: Rules
) -> tuple[Sequence[int | None], str]:
    """The index in ``theirs`` of each of ``ours``; None if it is unknown, for the reason returned."""
    nowhere: list[int | None] = [None] * len(ours)
    if not ours:
        return nowhere, ""
    if not rules.dense or not _consecutive(ours):
        return nowhere, COMPACTED if not rules.dense else DIFFERENT
    there, here = [item.digest for item in theirs], [item.digest for item in ours]
    common = min(len(there), len(here))
    both = part.before and len(here) == len(there)
    open_end = rules.lossless and not part.before
    if part.after and there[: len(here)] == here and (both or open_end):
        return range(len(here)), ""
    at_end = not part.after and part.before and there[len(there) - common :] == here[len(here) - common :]
    if rules.lossless and at_end and (common == len(here) or not rules.complete):
        shift = len(there) - len(here)
        return [at + shift if at + shift >= 0 else None for at in range(len(here))], EXPIRED
    if part.after or rules.complete:
        first, last = _embedded(there, here), _embedded(there[::-1], here[::-1])
        if first is None or last is None:
            return nowhere, DIFFERENT
        last = [len(there) - 1 - at for at in reversed(last)]
        return [one if one == other else None for one, other in zip(first, last, strict=True)], AMBIGUOUS
    return nowhere, AMBIGUOUS if set(here) & set(there) else EXPIRED


def _embedded(there: Sequence[bytes | None], here: Sequence[bytes | None]) -> list[int] | None:
    """The earliest index of each of ``here`` in ``there``, in order; None if they are not all there in order."""
    found = []
    at = 0
    for digest in here:
        while at < len(there) and there[at] != digest:
            at += 1
        if at == len(there):
            return None
        found.append(at)
        at += 1
    return found


def _side_by_side(theirs: Sequence[Item], ours: Sequence[Item]) -> list[Stretch]:
    """Equally many records on both sides, whose batches begin at different ones."""
    starts, bounds = ([0, *accumulate(item.records for item in items)] for items in (theirs, ours))
    found = []
    for at, behind in pairwise(sorted({*starts, *bounds})):
        there, here = (bisect_left(counted, at + 1) - 1 for counted in (starts, bounds))
        number = ours[here].number + at - bounds[here]
        offsets = theirs[there].first + at - starts[there], ours[here].first + at - bounds[here]
        found.append(Stretch(number, *offsets, behind - at))
    return joined(found)


def _consecutive(items: Sequence[Item]) -> bool:
    """No number is missing between them."""
    return all(_follows(one, other) for one, other in pairwise(items))


def _follows(one: Item, other: Item) -> bool:
    return other.number == one.number + one.records


def _whole(items: Sequence[Item]) -> bool:
    return all(item.whole for item in items)


def _records(items: Sequence[Item]) -> int:
    return sum(item.records for item in items)


def _joined_unknown(unknown: Sequence[Unknown]) -> list[Unknown]:
    found: list[Unknown] = []
    for one in unknown:
        last = found[-1] if found else None
        if last and one.number == last.number + last.records and one.reason == last.reason:
            found[-1] = last._replace(records=last.records + one.records, copy_to=one.copy_to)
        else:
            found.append(one)
    return found
