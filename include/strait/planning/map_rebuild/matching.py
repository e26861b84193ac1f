"""Matches each record on the destination to its source record by the contents of both logs. Pure.

A link copies every record once and in order. So contents that occur exactly once on each side belong together: they are
*anchors*. Between two anchors with equally many records on both sides, each record follows from its position. Every
other stretch is matched record by record, and a match counts only if no other assignment in order is possible.

Batches are compared first, since a batch that was passed through has equal bytes on both sides. A batch is an anchor
only if the candidate before or after it has the same distance between source and destination, counted in records: a
single batch may equal another one by chance if the batch that it was copied from was split or merged. Only stretches
that batches leave open need their records read.
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
"""If timestamps are not preserved and the original of an anchor may have expired, this many records before and after
the anchor must be equal as well."""


class Item(NamedTuple):
    """A batch or a record of a log.

    Attributes:
        first: offset of its first record.
        records: number of its records.
        digest: of its contents; None: not comparable with the other side.
        number: on the destination, the number of its first record among those of the link.
        whole: whether each of its offsets has a record.
        end: the offset after its last one.
    """

    first: int
    records: int
    digest: bytes | None
    number: int = -1
    whole: bool = True
    end: int = -1


class Stretch(NamedTuple):
    """Records from ``number`` on, at consecutive offsets from ``source`` (source) and ``copy`` (destination)."""

    number: int
    source: int
    copy: int
    records: int


class Unknown(NamedTuple):
    """Records from number ``number`` on, at destination offsets [``copy_from``, ``copy_to``), whose source offsets are
    unknown for ``reason``."""

    number: int
    records: int
    copy_from: int
    copy_to: int
    reason: str


class Open(NamedTuple):
    """A stretch that batches do not determine: offsets [from, to) on each side.

    ``after``, ``before``: the record preceding it, or following it, is an anchor, and no record number is missing in
    between.
    """

    source_from: int
    source_to: int
    copy_from: int
    copy_to: int
    after: bool
    before: bool


class Rules(NamedTuple):
    """Known properties of the two logs.

    Attributes:
        dense: neither topic is compacted: replicated records are missing only at the start of a log.
        complete: the source still holds its very first record.
        timed: destination records keep the timestamps of their source records. Without them, two different records may
            have equal contents.
        lossless: no record that the source holds is known to have been skipped, and none to have been replicated again.
    """

    dense: bool = True
    complete: bool = True
    timed: bool = True
    lossless: bool = True


def match_batches(source: Sequence[Item], copy: Sequence[Item], rules: Rules) -> tuple[list[Stretch], list[Open]]:
    """Match whole batches.

    Args:
        source: batches with committed records that the link replicates, in order.
        copy: batches of the link on the destination, in order, their numbers ascending.

    Returns:
        The exact stretches, in order, and the stretches whose records must be compared.
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
    """Match the records of a stretch. Return the exact stretches and the unknown records, both in order."""
    found: list[Stretch] = []
    unknown: list[Unknown] = []
    anchors = _anchors(source, copy)
    if not rules.timed and not rules.dense:
        anchors = []  # the original may have been compacted away, and an equal record written later
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
    """Merge stretches that continue each other on both sides."""
    found: list[Stretch] = []
    for one in stretches:
        last = found[-1] if found else None
        if last and (one.number, one.source, one.copy) == tuple(start + last.records for start in last[:3]):
            found[-1] = last._replace(records=last.records + one.records)
        else:
            found.append(one)
    return found


class _Part(NamedTuple):
    """The items between two anchors. ``after``, ``before``: as in `Open`. ``anchor``: the indices of the anchor after
    them; None: there is none."""

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
    """Return the indices of items whose contents occur once on each side, in the same order on both.

    If two of them contradict each other's order, neither counts.
    """
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
    """Return the anchors that have a neighbor at the same distance, counted in records."""
    counted = [0, *accumulate(item.records for item in source)]
    distances = [None, *(counted[there] - copy[here].number for there, here in anchors), None]
    return [pair for at, pair in enumerate(anchors, 1) if distances[at] in (distances[at - 1], distances[at + 1])]


def _proven(source: Sequence[Item], copy: Sequence[Item], anchors: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the anchors that are certain although an original may have expired and an equal record been written later.

    These are all anchors from the first one on whose successor is at the same distance, and around which everything
    that both sides hold is equal, as far as `EQUAL_AROUND`.
    """
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
    """Return the index in ``theirs`` of each of ``ours``, or None if it is unknown, and the reason for unknown ones."""
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
    """Return the earliest index of each of ``here`` in ``there``, in order; None if they are not all there in order."""
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
    """Match equally many records on both sides whose batches have different boundaries."""
    starts, bounds = ([0, *accumulate(item.records for item in items)] for items in (theirs, ours))
    found = []
    for at, behind in pairwise(sorted({*starts, *bounds})):
        there, here = (bisect_left(counted, at + 1) - 1 for counted in (starts, bounds))
        number = ours[here].number + at - bounds[here]
        offsets = theirs[there].first + at - starts[there], ours[here].first + at - bounds[here]
        found.append(Stretch(number, *offsets, behind - at))
    return joined(found)


def _consecutive(items: Sequence[Item]) -> bool:
    """Return whether no record number is missing between the items."""
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
