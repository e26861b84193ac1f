"""Offset segments of the map (`run` in names): source position <-> sequence <-> destination offset. Exact and pure.

In a segment the differences between the three are constant, except for gaps, and a normal partition has one segment
for its whole life. If source offsets hold no record to copy (transaction markers, aborted records, records that were
compacted or lost), the difference changes; a segment packs such *gaps*, so that a partition with 100 transactions per
second needs two or three bytes in the map for each. Sequences have 31 bits on the wire and are unbounded here; only
``full_sequence`` converts from the wire form.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from strait.state import packed_gaps
from strait.state.packed_gaps import Gaps, unpack
from strait.state.schema import OffsetMapping

SEQUENCE_MODULUS = 1 << 31
_MOST_PLACES = 16


class Gap(NamedTuple):
    """Record number ``sequence`` is at source offset ``source``, which is not the one after its predecessor's."""

    sequence: int
    source: int


def wire_sequence(sequence: int) -> int:
    """Return the sequence in the form of a batch header."""
    return sequence % SEQUENCE_MODULUS


def full_sequence(wire: int, *, near: int) -> int:
    """Return the sequence nearest to ``near`` whose wire form is ``wire``.

    ``near`` is a checkpoint: a number of records known to be written. The actual sequence may be lower if the
    destination lost records. The result is exact if it is within 2^30 records of the checkpoint, which is refreshed
    every minute. A negative result, which no link ever wrote, means that ``wire`` is not from this link.
    """
    ahead = (wire - near) % SEQUENCE_MODULUS
    return near + ahead if ahead < SEQUENCE_MODULUS // 2 else near + ahead - SEQUENCE_MODULUS


def source_offset(run: OffsetMapping, sequence: int) -> int:
    """Return the source offset of record number ``sequence``."""
    distance = sequence - run.sequence_base
    return run.source_base + distance + _missing_before(run, distance)


def source_position(run: OffsetMapping, sequence: int) -> int:
    """Return the next source offset to read once all records before number ``sequence`` are copied.

    It follows the last record directly, before any gap.
    """
    return run.source_base if sequence <= run.sequence_base else source_offset(run, sequence - 1) + 1


def destination_offset(run: OffsetMapping, sequence: int) -> int:
    """Return the destination offset of record number ``sequence``."""
    return run.destination_base + sequence - run.sequence_base


def sequence_at_destination(run: OffsetMapping, offset: int) -> int:
    """Return the number of the record at destination offset ``offset``, by this segment."""
    return run.sequence_base + offset - run.destination_base


def gaps_of(run: OffsetMapping, first: int = 0, behind: int = 1 << 62) -> list[Gap]:
    """Return the segment's base and gaps with record numbers in [``first``, ``behind``)."""
    said = [Gap(run.sequence_base, run.source_base)] if first <= run.sequence_base < behind else []
    if not run.gaps:
        return said
    starts, missing = unpack(run.gaps)
    low, high = bisect_left(starts, first - run.sequence_base), bisect_left(starts, behind - run.sequence_base)
    for records, lacking in zip(starts[low:high], missing[low:high], strict=True):
        said.append(Gap(run.sequence_base + records, run.source_base + records + lacking))
    return said


def locate(runs: Sequence[OffsetMapping], sequence: int) -> int:
    """Return the next source offset to read once all records before number ``sequence`` are copied.

    It is the likeliest of `places`.
    """
    return places(runs, sequence)[0]


def places(runs: Sequence[OffsetMapping], sequence: int) -> list[int]:
    """Return the possible next source offsets once all records before ``sequence`` are copied, the likeliest first.

    From the newest checkpoint before it, all gaps up to it apply, regardless of the segment that has them: if the
    source's batches never change, every writer of the link finds the same gaps. Then there is one offset. Gaps
    contradict each other if the source was compacted, lost records or was copied from its start again between two
    writers, or if a record was rejected first and accepted later. The correct offset is then among those returned,
    unless there are more than 16, and only a comparison of the records can identify it.

    Args:
        runs: all segments of one partition and one pair of topic IDs, by sequence_base; at least one of them starts at
            or before ``sequence``.
    """
    start, said, named = _named(runs, sequence)
    if _ascending(start, said):
        return named[-1:]
    return list(dict.fromkeys(reversed(named)))[:_MOST_PLACES]


def _named(runs: Sequence[OffsetMapping], sequence: int) -> tuple[Gap, list[Gap], list[int]]:
    """Return the newest checkpoint before ``sequence``, all gaps from there on, and the offset by each of them."""
    begun = [run for run in runs if run.sequence_base <= sequence]
    confirmed = [run for run in begun if run.sequence_base <= run.sequence_end <= sequence]
    anchor = newest_checkpoint(confirmed) if confirmed else begun[-1]
    checked = anchor.sequence_end if confirmed else anchor.sequence_base
    start = Gap(checked, source_position(anchor, checked))  # next to read; the record may come later
    said = sorted({gap for run in begun for gap in gaps_of(run, checked, sequence)} - {start})
    return start, said, [gap.source + sequence - gap.sequence for gap in (start, *said)]


def candidates(runs: Sequence[OffsetMapping], sequence: int) -> list[int]:
    """Return every offset that follows from some gap in the map, the likeliest first.

    Unlike `places`, it does not assume that ascending gaps are all true: a writer may have recorded a gap for a batch
    that was never appended.
    """
    _, _, named = _named(runs, sequence)
    return list(dict.fromkeys([*places(runs, sequence), *reversed(named)]))[:_MOST_PLACES]


def _ascending(start: Gap, said: Sequence[Gap]) -> bool:
    """Return whether each gap belongs to a different record and none moves the source position backwards."""
    return all(
        one.source - one.sequence <= other.source - other.sequence and (one.sequence < other.sequence or one is start)
        for one, other in pairwise((start, *said))
    )


def newest_checkpoint(runs: Iterable[OffsetMapping]) -> OffsetMapping:
    """Return the segment that confirms the most records; of equals the one that starts last, at the lowest offset."""
    return max(runs, key=_confirmed)


def newest_first(runs: Iterable[OffsetMapping]) -> list[OffsetMapping]:
    """Return the segments in the order in which `newest_checkpoint` prefers them."""
    return sorted(runs, key=_confirmed, reverse=True)


def _confirmed(run: OffsetMapping) -> tuple[int, int, int]:
    return run.sequence_end, run.sequence_base, -run.source_base


def covering(runs: Sequence[OffsetMapping], sequence: int) -> OffsetMapping:
    """Return the segment that locates record number ``sequence``; the first one if the record precedes them all."""
    begun = [run for run in runs if run.sequence_base <= sequence]
    key = attrgetter("sequence_base", "sequence_end", "source_base", "destination_base")
    return max(begun, key=key, default=runs[0])


def pack(gaps: Iterable[Gap], *, sequence_base: int, source_base: int, bits: bool = False) -> str:
    """Pack the gaps after a segment's base, ascending in both coordinates, to the text that a segment carries.
    ``bits``: see `strait.state.packed_gaps`.

    Raises ValueError if they do not ascend or are too many.
    """
    starts, missing = array("q"), array("q")
    for gap in gaps:
        starts.append(gap.sequence - sequence_base)
        missing.append(gap.source - source_base - starts[-1])
    return packed_gaps.pack(Gaps(starts, missing), bits=bits)


def gap_count(run: OffsetMapping) -> int:
    """Return the number of gaps of a segment."""
    return len(unpack(run.gaps).starts)


def _missing_before(run: OffsetMapping, distance: int) -> int:
    if not run.gaps:
        return 0
    starts, missing = unpack(run.gaps)
    at = bisect_right(starts, distance)
    return missing[at - 1] if at else 0
