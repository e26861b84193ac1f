"""Packs the offset segments before a checkpoint into few. Pure."""

from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from strait.state import packed_gaps
from strait.state.codec import run_key
from strait.state.offset_map import destination_offset, gap_count
from strait.state.packed_gaps import MOST_GAPS, Gaps, unpack
from strait.state.schema import OffsetMapping

PACK_RUNS = 16  # this many segments before the checkpoint are packed
PACKED_GAPS = MOST_GAPS // 2  # a segment with this many gaps is not packed again
PACKED_CHARACTERS = 32 << 10  # nor one that has grown to this size


Numbers = np.ndarray[Any, np.dtype[np.int64]]


class _Steps(NamedTuple):
    """The differences between a record's source offset and its number, ``shifts``, each from record number ``starts`` on."""

    starts: Numbers
    shifts: Numbers

    def at(self, sequences: Numbers) -> Numbers:
        """Return the difference at each of these record numbers; before the first step, that of the first."""
        return self.shifts[np.maximum(0, np.searchsorted(self.starts, sequences, "right") - 1)]

    def within(self, first: int, behind: int) -> "_Steps":
        low, high = np.searchsorted(self.starts, (first, behind))
        return _Steps(self.starts[low:high], self.shifts[low:high])


def packing(
    known: Sequence[OffsetMapping], newest: OffsetMapping, *, shared: bool = False
) -> tuple[Sequence[OffsetMapping], Sequence[OffsetMapping]]:
    """Return the segments to write in order to confirm ``newest``, of which the last one does, and those whose entries they
    take over.

    Args:
        known: the partition's segments for these topic IDs, by ``sequence_base``.
        newest: with its checkpoint: all records before ``sequence_end`` are written, at the offsets that it maps.
        shared: other producers write there too. The packed segment then has the destination offset of the newest
            record; the offsets of older ones are in the log itself, as each batch there has its sequence.
    """
    end = newest.sequence_end
    begun = [
        run
        for run in known
        if run.sequence_base < end
        and (shared or destination_offset(run, newest.sequence_base) == newest.destination_base)
        and run.source_base - run.sequence_base <= newest.source_base - newest.sequence_base
    ]
    # A packed segment describes all records from its start on, so it starts after the gaps that others hold.
    known_from = max((run.sequence_base for run in (*begun, newest) if run.after_unknown), default=0)
    full = [run for run in begun if _extent(run).is_full]
    first = max([known_from, *(_extent(run).last + 1 for run in full)])
    older = [run for run in begun if run.sequence_base >= first and not _extent(run).is_full]
    if len(older) < PACK_RUNS:
        return [newest], ()
    # A full segment may end inside another one, whose later gaps are to be packed now.
    astride = [
        run
        for run in begun
        if run.sequence_base < first <= _extent(run).last and not (_extent(run).is_full or run.after_unknown)
    ]
    start = older[0].sequence_base
    steps = _merged([_steps(run) for run in (*older, *astride, newest)]).within(start, end)
    if len(steps.starts) > PACKED_GAPS + 1 and shared:
        return [newest], ()
    if not all(_agree(_steps(run).within(start, end), steps) for run in (*older, *astride)):
        return [newest], ()  # the source is being compacted; the checkpoint shows which is correct
    cuts = [*range(0, len(steps.starts), PACKED_GAPS + 1), len(steps.starts)]
    packed = [_segment(newest, steps, first, behind) for first, behind in pairwise(cuts)]
    after_unknown = any(run.after_unknown for run in older)
    packed[0] = packed[0].model_copy(update={"after_unknown": after_unknown})
    keys = {run_key(one) for one in packed}
    behind = [*older, *(run for run in astride if _is_within(run, start, full))]
    return packed, [run for run in behind if _extent(run).last < end and run_key(run) not in keys]


class _Extent(NamedTuple):
    """Number of the record at a segment's last gap, or its base; and whether the segment is not packed again."""

    last: int
    is_full: bool


_EXTENTS: WeakKeyDictionary[OffsetMapping, _Extent] = WeakKeyDictionary()
"""Of the segments that checkpoints have looked at: each minute all of a partition's are, and unpacking one takes a millisecond."""


def _extent(run: OffsetMapping) -> _Extent:
    found = _EXTENTS.get(run)
    if found is None:
        is_full = len(run.gaps) >= PACKED_CHARACTERS or gap_count(run) >= PACKED_GAPS
        found = _EXTENTS[run] = _Extent(int(_steps(run).starts[-1]), is_full)
    return found


def _is_within(run: OffsetMapping, behind: int, full: Sequence[OffsetMapping]) -> bool:
    """Return whether full segments have exactly the gaps of a segment before record number ``behind``."""
    there = [_steps(one) for one in full if one.sequence_base <= run.sequence_base <= _extent(one).last]
    return bool(there) and _agree(_steps(run).within(0, behind), _merged(there))


def _steps(run: OffsetMapping) -> _Steps:
    """Return the steps of a segment, the first at its base."""
    starts, missing = map(np.asarray, unpack(run.gaps))
    shift = run.source_base - run.sequence_base
    return _Steps(
        np.concatenate([[run.sequence_base], starts + run.sequence_base]), np.concatenate([[shift], missing + shift])
    )


def _merged(all_steps: Iterable[_Steps]) -> _Steps:
    """Return the steps of all segments together, without the starts of segments at which no offset is missing."""
    starts, shifts = (np.concatenate(columns) for columns in zip(*all_steps, strict=True))
    order = np.lexsort((shifts, starts))
    starts, shifts = starts[order], shifts[order]
    higher = np.ones(len(shifts), bool)
    higher[1:] = shifts[1:] > np.maximum.accumulate(shifts)[:-1]
    return _Steps(starts[higher], shifts[higher])


def _agree(own: _Steps, merged: _Steps) -> bool:
    """Return whether a segment, from its first to its last gap, agrees exactly with all segments together."""
    if not len(own.starts):
        return True
    between = merged.within(int(own.starts[0]), int(own.starts[-1]) + 1)
    return bool(np.all(own.at(between.starts) == between.shifts) and np.all(merged.at(own.starts) == own.shifts))


def _segment(newest: OffsetMapping, steps: _Steps, first: int, behind: int) -> OffsetMapping:
    """Return a segment of some steps. It confirms the records up to the next one, or all that ``newest`` does."""
    last = behind == len(steps.starts)
    base, shift = int(steps.starts[first]), int(steps.shifts[first])
    gaps = steps.starts[first + 1 : behind] - base, steps.shifts[first + 1 : behind] - shift
    return newest.model_copy(
        update={
            "sequence_base": base,
            "source_base": base + shift,
            "destination_base": max(0, newest.destination_base - newest.sequence_base + base),
            "gaps": packed_gaps.pack(Gaps(*(array("q", one.tobytes()) for one in gaps)), bits=bool(newest.transform)),
            "sequence_end": newest.sequence_end if last else int(steps.starts[behind]),
            "source_epoch": newest.source_epoch if last else -1,
            "after_unknown": False,
        }
    )
