"""Runs of constant difference: source position <-> sequence <-> destination offset, exact and pure.

A normal partition has one run for its whole life. Where source offsets hold no record to copy (transaction markers,
aborted records, what compaction removed, what was lost), the difference changes; a run packs such *gaps*, so that a
partition with a hundred transactions a second costs the map two or three bytes for each. Sequences are 31 bits on the
wire and unbounded here; the two meet only in ``full_sequence``.
"""

import base64
import binascii
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from threading import Lock
from typing import NamedTuple

from cachetools import LRUCache, cached

from strait.state.schema import OffsetMapping

SEQUENCE_MODULUS = 1 << 31
MOST_GAPS = 50_000
"""In one run. With two numbers for each that is below `_UNPACKED_BYTES`, whatever they are."""
_UNPACKED_BYTES = 1 << 20
_NUMBER_BYTES = 9  # of 63 bits
_KEPT_BYTES = 32 << 20  # of unpacked gaps
_MOST_PLACES = 16
_MOST_OFFSET = 1 << 63


class Gap(NamedTuple):
    """Record number ``sequence`` is at source offset ``source``, which is not the one behind its predecessor's."""

    sequence: int
    source: int


def wire_sequence(sequence: int) -> int:
    """The sequence as a batch header carries it."""
    return sequence % SEQUENCE_MODULUS


def full_sequence(wire: int, *, near: int) -> int:
    """The sequence nearest to ``near`` whose wire form is ``wire``.

    ``near`` is a checkpoint: a number of records known to be written. The truth may lie behind it, where the
    destination lost records. Exact as long as it is within 2^30 records of the checkpoint, which is refreshed every
    minute. May be negative, which no link ever wrote: then the wire form is not of this link's making.
    """
    ahead = (wire - near) % SEQUENCE_MODULUS
    return near + ahead if ahead < SEQUENCE_MODULUS // 2 else near + ahead - SEQUENCE_MODULUS


def source_offset(run: OffsetMapping, sequence: int) -> int:
    """Source offset of record number ``sequence``."""
    distance = sequence - run.sequence_base
    return run.source_base + distance + _missing_before(run, distance)


def source_position(run: OffsetMapping, sequence: int) -> int:
    """Where to read on once all records before number ``sequence`` are copied: behind the last one, before any gap."""
    return run.source_base if sequence <= run.sequence_base else source_offset(run, sequence - 1) + 1


def destination_offset(run: OffsetMapping, sequence: int) -> int:
    """Destination offset of record number ``sequence``."""
    return run.destination_base + sequence - run.sequence_base


def sequence_at_destination(run: OffsetMapping, offset: int) -> int:
    """Number of the record at destination offset ``offset``, by this run."""
    return run.sequence_base + offset - run.destination_base


def gaps_of(run: OffsetMapping, first: int = 0, behind: int = 1 << 62) -> list[Gap]:
    """What the run says of record numbers [``first``, ``behind``): its base and its gaps."""
    said = [Gap(run.sequence_base, run.source_base)] if first <= run.sequence_base < behind else []
    starts, missing = _unpacked(run.gaps)
    low, high = bisect_left(starts, first - run.sequence_base), bisect_left(starts, behind - run.sequence_base)
    for at in range(low, high):
        said.append(Gap(run.sequence_base + starts[at], run.source_base + starts[at] + missing[at]))
    return said


def locate(runs: Sequence[OffsetMapping], sequence: int) -> int:
    """Where the source is read on once all records before number ``sequence`` are copied.

    The likeliest of `places`.
    """
    return places(runs, sequence)[0]


def places(runs: Sequence[OffsetMapping], sequence: int) -> list[int]:
    """Where the source may be read on once all records before number ``sequence`` are copied, the likeliest first.

    From the newest checkpoint before it, all gaps up to it apply, whichever run says so: of a source whose batches
    never change, every writer of the link finds the same ones. Then there is one place. Words disagree where the source
    was compacted, lost records or was begun again between two writers, or a record was refused first and taken later:
    the right place is then among those returned, unless there are very many, and the records themselves must decide.

    Args:
        runs: all runs of one partition and one pair of topic ids, by sequence_base; at least one of them begins at
            or before ``sequence``.
    """
    start, said, named = _named(runs, sequence)
    if _ascending(start, said):
        return named[-1:]
    return list(dict.fromkeys(reversed(named)))[:_MOST_PLACES]


def _named(runs: Sequence[OffsetMapping], sequence: int) -> tuple[Gap, list[Gap], list[int]]:
    """The newest checkpoint before ``sequence``, all words from there on, and the place by each of them."""
    begun = [run for run in runs if run.sequence_base <= sequence]
    confirmed = [run for run in begun if run.sequence_base <= run.sequence_end <= sequence]
    anchor = newest_checkpoint(confirmed) if confirmed else begun[-1]
    checked = anchor.sequence_end if confirmed else anchor.sequence_base
    start = Gap(checked, source_position(anchor, checked))  # read from here on; the record itself may come later
    said = sorted({gap for run in begun for gap in gaps_of(run, checked, sequence)} - {start})
    return start, said, [gap.source + sequence - gap.sequence for gap in (start, *said)]


def candidates(runs: Sequence[OffsetMapping], sequence: int) -> list[int]:
    """Every place that some word of the map names, the likeliest first: `places` without the rule that words in
    ascending order are all true. One that a writer wrote down for a batch that never came to be the one appended is
    not."""
    _, _, named = _named(runs, sequence)
    return list(dict.fromkeys([*places(runs, sequence), *reversed(named)]))[:_MOST_PLACES]


def _ascending(start: Gap, said: Sequence[Gap]) -> bool:
    """Each word is about another record, and none takes back offsets that were passed before."""
    return all(
        one.source - one.sequence <= other.source - other.sequence and (one.sequence < other.sequence or one is start)
        for one, other in pairwise((start, *said))
    )


def newest_checkpoint(runs: Iterable[OffsetMapping]) -> OffsetMapping:
    """The run that confirms most records; of equals the one that begins last, at the lowest source offset."""
    return max(runs, key=_confirmed)


def newest_first(runs: Iterable[OffsetMapping]) -> list[OffsetMapping]:
    """Each before those that `newest_checkpoint` would name after it."""
    return sorted(runs, key=_confirmed, reverse=True)


def _confirmed(run: OffsetMapping) -> tuple[int, int, int]:
    return run.sequence_end, run.sequence_base, -run.source_base


def covering(runs: Sequence[OffsetMapping], sequence: int) -> OffsetMapping:
    """The run that says where record number ``sequence`` is; the first one for what lies before them all."""
    begun = [run for run in runs if run.sequence_base <= sequence]
    key = attrgetter("sequence_base", "sequence_end", "source_base", "destination_base")
    return max(begun, key=key, default=runs[0])


def pack(gaps: Iterable[Gap], *, sequence_base: int, source_base: int) -> str:
    """The gaps behind a run's base, ascending in both coordinates, as the text that a run carries."""
    out = bytearray()
    sequence, source = sequence_base, source_base
    for gap in gaps:
        records = gap.sequence - sequence
        missing = gap.source - source - records
        if records <= 0 or missing <= 0:
            raise ValueError(f"{gap} does not lie behind record {sequence} at {source}")
        _put(out, records)
        _put(out, missing)
        sequence, source = gap
    if len(out) > _UNPACKED_BYTES:
        raise ValueError(f"a run with {len(out):,} bytes of gaps could not be read")
    return base64.b64encode(zlib.compress(bytes(out), 9)).decode() if out else ""


def _put(out: bytearray, number: int) -> None:
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)


def gap_count(run: OffsetMapping) -> int:
    """How many gaps a run has."""
    return len(_unpacked(run.gaps)[0])


def check_gaps(gaps: str) -> str:
    """The same text, if it can be unpacked. Raises ValueError."""
    _unpacked(gaps)
    return gaps


@cached(LRUCache(_KEPT_BYTES, getsizeof=lambda kept: 512 + 16 * len(kept[0])), lock=Lock())
def _unpacked(gaps: str) -> "tuple[array[int], array[int]]":
    """For each gap the records between the base and it, and the offsets without a record up to it. Raises
    ValueError."""
    starts, missing = array("q"), array("q")
    if gaps:
        try:
            opened = zlib.decompressobj()
            data = opened.decompress(base64.b64decode(gaps, validate=True), _UNPACKED_BYTES)
        except (binascii.Error, zlib.error) as error:
            raise ValueError(f"gaps are not what was packed: {error}") from None
        if not opened.eof:
            raise ValueError("gaps are cut short")
        start = lacking = 0
        numbers = _numbers(data)
        for records in numbers:
            start += records
            lacking += next(numbers, 0)
            if start + lacking >= _MOST_OFFSET:
                raise ValueError("gaps reach beyond any offset")
            starts.append(start)
            missing.append(lacking)
    return starts, missing


def _numbers(data: bytes) -> Iterator[int]:
    number = shift = 0
    for byte in data:
        number |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
            if shift >= 7 * _NUMBER_BYTES:
                raise ValueError("gaps hold a number of more than 63 bits")
        else:
            yield number
            number = shift = 0


def _missing_before(run: OffsetMapping, distance: int) -> int:
    if not run.gaps:
        return 0
    starts, missing = _unpacked(run.gaps)
    at = bisect_right(starts, distance)
    return missing[at - 1] if at else 0
