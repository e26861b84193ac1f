"""Builds offset map entries from records whose offsets on both sides are known. Pure."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from strait.planning.map_rebuild.matching import Item, Stretch, Unknown
from strait.state.codec import run_key
from strait.state.offset_map import SEQUENCE_MODULUS, Gap, gaps_of, pack, wire_sequence
from strait.state.schema import OffsetMapping

GAPS_PER_ENTRY = 5_000
"""Maximum number of gaps per entry, which is then some kilobytes large; more gaps go into another entry."""
MOST_SPANS = 1_000
"""A new entry starts after each stretch of unknown records. Of more than this number of known spans, only the newest
are written."""

LEFT_OUT = f"only the newest {MOST_SPANS} known stretches are written"
DELETED = "the destination no longer holds these records"


class Logged(NamedTuple):
    """A batch of the link in the destination's log. ``sequence``: of its first record, as in the batch header."""

    first: int
    end: int
    sequence: int


def numbers(batches: Sequence[Logged]) -> list[int]:
    """Return the record number of each batch's first record, counted over all records of the link.

    A number is at most the record's offset, since each record of the link occupies one offset. So the first number is
    known except for multiples of 2^31, and the largest possible value is taken. Each later number follows from its
    predecessor.
    """
    found: list[int] = []
    for batch in batches:
        if not found:
            at_most = batch.first - (batch.first - batch.sequence) % SEQUENCE_MODULUS
            found.append(at_most if at_most >= 0 else batch.sequence)
            continue
        ahead = (batch.sequence - wire_sequence(found[-1])) % SEQUENCE_MODULUS
        found.append(found[-1] + ahead - (SEQUENCE_MODULUS if ahead >= SEQUENCE_MODULUS // 2 else 0))
    return found


def last_ascending(copy: Sequence[Item]) -> int:
    """Return the index of the first batch from which on numbers ascend.

    Earlier batches were numbered by a previous incarnation of the link.
    """
    for at in range(len(copy) - 1, 0, -1):
        if copy[at].number < copy[at - 1].number + copy[at - 1].records:
            return at
    return 0


def entries(
    like: OffsetMapping, stretches: Sequence[Stretch], *, source_epoch: int
) -> tuple[list[OffsetMapping], list[Unknown]]:
    """Return the entries to write, and the known records that they omit.

    Args:
        like: provides the topics, their IDs and the time of the checkpoint; all other fields are replaced.
        stretches: exact, in order; the last one ends with the last record of the link.
        source_epoch: the source's leader epoch of that record.
    """
    spans = _spans(stretches)
    left_out = [
        Unknown(span[0].number, span[-1].number + span[-1].records - span[0].number, span[0].copy, _end(span), LEFT_OUT)
        for span in spans[:-MOST_SPANS]
    ]
    spans = spans[-MOST_SPANS:]
    shared = len({one.copy - one.number for span in spans for one in span}) > 1
    found = []
    for span in spans:
        for at, part in enumerate(_parts(span)):
            found.append(_entry(like, part, shared=shared, after_unknown=at == 0 and part[0].number > 0))
    return [*found[:-1], found[-1].model_copy(update={"source_epoch": source_epoch})], left_out


def first_entry(like: OffsetMapping, source: int, copy: int) -> OffsetMapping:
    """Return the entry of a partition of which nothing has been replicated yet."""
    return like.model_copy(
        update={"source_base": source, "destination_base": copy, "sequence_base": 0, "sequence_end": 0, "gaps": ""}
    )


def _spans(stretches: Sequence[Stretch]) -> list[list[Stretch]]:
    """Group the stretches between which no record number is missing."""
    spans: list[list[Stretch]] = []
    for one in stretches:
        if spans and spans[-1][-1].number + spans[-1][-1].records == one.number:
            spans[-1].append(one)
        else:
            spans.append([one])
    return spans


def _parts(span: Sequence[Stretch]) -> list[Sequence[Stretch]]:
    return [span[at : at + GAPS_PER_ENTRY] for at in range(0, len(span), GAPS_PER_ENTRY)]


def _entry(like: OffsetMapping, part: Sequence[Stretch], *, shared: bool, after_unknown: bool) -> OffsetMapping:
    number, source = part[0].number, part[0].source
    gaps = [
        Gap(other.number, other.source)
        for one, other in pairwise(part)
        if other.source - other.number != one.source - one.number
    ]
    end = part[-1].number + part[-1].records
    return like.model_copy(
        update={
            "source_base": source,
            # Derived from the last record: records of other producers may lie before it.
            "destination_base": max(0, _end(part) - (end - number)),
            "sequence_base": number,
            "sequence_end": end,
            "gaps": pack(gaps, sequence_base=number, source_base=source),
            "shared": shared or like.shared,
            "after_unknown": after_unknown,
        }
    )


def _end(part: Sequence[Stretch]) -> int:
    return part[-1].copy + part[-1].records


def replaced(known: Iterable[OffsetMapping], written: Sequence[OffsetMapping]) -> list[OffsetMapping]:
    """Return the known entries of the same topics that the written ones supersede.

    Entries that only describe source offsets after the last record are kept: these offsets were skipped, or their
    records are about to be sent.
    """
    keys, end = {run_key(run) for run in written}, written[-1].sequence_end
    return [
        run
        for run in known
        if _topics(run) == _topics(written[0])
        and run_key(run) not in keys
        and (run.sequence_end > end or not gaps_of(run, first=end))
    ]


def _topics(run: OffsetMapping) -> tuple[str, str, str]:
    return run.destination, run.destination_id, run.source_id
