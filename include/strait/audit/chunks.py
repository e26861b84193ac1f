"""Splits partitions into chunks that are compared separately, and draws samples of them. Pure."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from strait.audit.comparing import Bounds
from strait.audit.findings import Kind
from strait.audit.numbering import Pieces
from strait.audit.plan import AuditedPartition, OnRecord
from strait.audit.task_result import Key
from strait.config.audit import AuditRequest, Relation
from strait.state.translation import Translator

MARGIN = 20_000
"""Records before and after a chunk whose numbers it knows, too: a batch may reach beyond the chunk."""
FEW_GAPS = 0.1
"""If fewer of a partition's chunks have gaps, a sample includes all of these."""
LEAST_RECORDS, MOST_RECORDS = 1_000, 2_000_000
_USUAL_BYTES = 320


class Mark(NamedTuple):
    """Records [``first``, ``end``) of the link whose digest the replication ledger has, from a destination offset on."""

    first: int
    end: int
    copy_from: int
    digest: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one partition that are compared at a time.

    Attributes:
        facts: its partition, without the entries on record.
        bounds: their numbers, and their source offsets.
        copy_from, copy_to: the destination offsets that hold them.
        pieces: of the link's records, the source offsets by number, with a margin.
        shift: difference between number and destination offset; None: not constant.
        moved_in: another tool had replicated them before the link started.
        on_record: the entries about its offsets.
        marks: the digests of the ledger that its records are checked by.
    """

    facts: AuditedPartition
    relation: Relation
    bounds: Bounds
    copy_from: int
    copy_to: int
    pieces: Pieces = field(default_factory=Pieces, compare=False)
    shift: int | None = None
    by_time: bool = False
    moved_in: bool = False
    on_record: tuple[OnRecord, ...] = ()
    marks: tuple[Mark, ...] = ()

    @property
    def key(self) -> Key:
        return Key(self.facts.topic, self.facts.partition, self.bounds.first, self.bounds.source_from)

    @property
    def is_evaluated(self) -> bool:
        """Whether the source's records have to be transformed before they are compared."""
        return self.facts.transform is not None and self.relation == "map"

    def holds(self, entry: OnRecord) -> bool:
        """Return whether an entry is about offsets of the chunk."""
        first, end = self.bounds[2:] if entry.side == "source" else (self.copy_from, self.copy_to)
        return entry.first < end and entry.end > first

    def explain(self, kind: Kind, source: int, copy: int) -> str:
        """Return the cause on record for a difference, or ""."""
        for one in self.on_record:
            offset = source if one.side == "source" else copy
            if one.first <= offset < one.end:
                return one.cause
        if (kind == "missing" and self.facts.copy_compacted) or (kind == "extra" and self.facts.source_compacted):
            return "compaction"
        if not self.moved_in:
            return ""
        return {"duplicate": "moved in", "extra": self.facts.on_foreign}.get(kind, "")


def chunk_records(chunk_bytes: int, log_bytes: int, records: int) -> int:
    """Return how many records a chunk has, given the partition's size; 0: unknown."""
    each = log_bytes / records if log_bytes and records else _USUAL_BYTES
    wanted = max(LEAST_RECORDS, min(MOST_RECORDS, int(chunk_bytes / max(each, 1.0))))
    return 1 << wanted.bit_length() - 1  # so that a log that grows a little has the same chunks


def chunks_of(one: AuditedPartition, request: AuditRequest, map_of: Translator | None = None) -> list[Chunk]:
    """Return the chunks of a partition, in order.

    Args:
        map_of: the link's map of it; None: for the copies of another tool.
    """
    if one.problem:
        return []
    facts = one.model_copy(update={"on_record": ()})  # each chunk has only the entries about its offsets
    found = [] if map_of is None else _moved_in(facts, map_of)
    if one.transform is not None and map_of is not None:
        found += _transformed(facts, map_of)
    elif one.first < one.end:
        found += _without_map(facts, request) if map_of is None else _mapped(facts, map_of)
    return [replace(chunk, on_record=tuple(it for it in one.on_record if chunk.holds(it))) for chunk in found]


def _moved_in(one: AuditedPartition, map_of: Translator) -> list[Chunk]:
    """Return the chunk of the records before the link's first one. Their numbers, before its number, are those of no other
    chunk."""
    before, (base, _) = one.moved_in, map_of.first
    if before is None or before.source_end <= one.source_start:
        return []
    bounds = Bounds(base - before.source_end + one.source_start, base, one.source_start, before.source_end)
    return [Chunk(one, "order", bounds, one.copy_start, before.copy_end, moved_in=True)]


def _without_map(one: AuditedPartition, request: AuditRequest) -> Iterator[Chunk]:
    if request.relation == "order":
        whole = Bounds(one.source_start, one.source_end, one.source_start, one.source_end)
        yield Chunk(one, "order", whole, one.copy_start, one.copy_end, by_time=request.since_ms is not None)
        return
    for first in range(one.first, one.end, one.chunk_records):
        end = min(first + one.chunk_records, one.end)
        yield Chunk(one, "offset", Bounds(first, end, first, end), first, end)


def _mapped(one: AuditedPartition, map_of: Translator) -> Iterator[Chunk]:
    step = one.end - one.first if one.whole else one.chunk_records
    copy_start = max(one.copy_start, one.moved_in.copy_end if one.moved_in else 0)
    for low in range(one.first, one.end, step):
        known = _joined(map_of.pieces(low, min(low + step, one.end)))
        for first, end in known:
            near = map_of.pieces(max(0, first - MARGIN), end + MARGIN)
            inside = map_of.pieces(first, end)
            following = map_of.pieces(end, end + 1)
            source_to = following[0][1] if following and end < one.end else inside[-1][1] + inside[-1][2]
            bounds = Bounds(first, end, inside[0][1], source_to)
            copy_from, copy_to = (copy_start, one.copy_end) if one.whole else map_of.copies(first, end)
            straight = not one.whole and copy_to - copy_from == end - first
            shift = first - copy_from if straight else None
            yield Chunk(one, "map", bounds, copy_from, copy_to, Pieces(near), shift)


def _transformed(one: AuditedPartition, map_of: Translator) -> Iterator[Chunk]:
    """Yield the chunks by source offsets, since any number of them may hold no record that is copied."""
    step = one.source_to - one.source_from if one.whole else one.chunk_records
    for low in range(one.source_from, one.source_to, max(1, step)):
        high = min(low + step, one.source_to)
        first, end = (min(max(map_of.records_before(at).number, one.first), one.end) for at in (low, high))
        pieces = map_of.pieces(first, end)
        known = _joined(pieces)
        if (not known and first == end) or known == [(first, end)]:
            yield _evaluated(one, map_of, Bounds(first, end, low, high), pieces)
            continue
        for number, behind in known:  # of the others the map does not determine the source offsets
            inside = map_of.pieces(number, behind)
            bounds = Bounds(number, behind, inside[0][1], inside[-1][1] + inside[-1][2])
            yield _evaluated(one, map_of, bounds, inside)


def _evaluated(
    one: AuditedPartition, map_of: Translator, bounds: Bounds, pieces: Sequence[tuple[int, int, int]]
) -> Chunk:
    first, end = bounds.first, bounds.end
    copy_from, copy_to = (one.copy_start, one.copy_end) if one.whole else map_of.copies(first, max(end, first + 1))
    if first == end:
        copy_to = copy_from
    straight = not one.whole and copy_to - copy_from == end - first
    shift = first - copy_from if straight else None
    return Chunk(one, "map", bounds, copy_from, copy_to, Pieces(pieces), shift)


def _joined(pieces: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return the ranges of numbers that the pieces cover without interruption."""
    found: list[tuple[int, int]] = []
    for number, _, records in pieces:
        if found and found[-1][1] == number:
            found[-1] = found[-1][0], number + records
        else:
            found.append((number, number + records))
    return found


def sampled(chunks: Sequence[Chunk], rate: float, seed: str) -> list[Chunk]:
    """Return the chunks of one partition that a sample includes: the first and the last of the link's own, each of these
    with an entry on record, each with a gap if few have one, and a share of the others that only the seed determines."""
    if rate >= 1:
        return list(chunks)
    own = [chunk for chunk in chunks if not chunk.moved_in]
    with_gaps = {chunk.key for chunk in own if _has_gap(chunk)}
    always = {chunk.key for chunk in (*own[:1], *own[-1:])} | {chunk.key for chunk in own if chunk.on_record}
    if len(with_gaps) < FEW_GAPS * len(own):
        always |= with_gaps
    return [chunk for chunk in chunks if chunk.key in always or _draw(chunk.key, seed) < rate]


def _has_gap(chunk: Chunk) -> bool:
    first, end, source_from, source_to = chunk.bounds
    return source_to - source_from != end - first


def _draw(key: Key, seed: str) -> float:
    return zlib.crc32(f"{seed}/{key.topic}/{key.partition}/{key.first}/{key.source_from}".encode()) / 2**32


def unknown_records(one: AuditedPartition, map_of: Translator) -> int:
    """Return how many records of the range have source offsets that the map does not determine."""
    return one.end - one.first - sum(records for _, _, records in map_of.pieces(one.first, one.end))
