"""Splits partitions into chunks that are compared separately, and draws samples of them. Pure."""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from strait.audit.comparing import Bounds
from strait.audit.findings import Kind
from strait.audit.numbering import Piece
from strait.audit.plan import AuditedPartition, OnRecord
from strait.config.audit import AuditRequest, Relation
from strait.state.translation import Translator

MARGIN = 20_000
"""Records before and after a chunk whose numbers it knows, too: a batch may reach beyond the chunk."""
FEW_GAPS = 0.1
"""If fewer of a partition's chunks have gaps, a sample includes all of these."""
LEAST_RECORDS, MOST_RECORDS = 1_000, 2_000_000
_USUAL_BYTES = 320


@dataclass(frozen=True, slots=True)
class Chunk:
    """Records of one partition that are compared at a time.

    Attributes:
        bounds: their numbers, and their source offsets.
        copy_from, copy_to: the destination offsets that hold them.
        pieces: of the link's records, the source offsets by number, with a margin.
        shift: difference between number and destination offset; None: not constant.
    """

    topic: str
    partition: int
    copy_topic: str
    relation: Relation
    bounds: Bounds
    copy_from: int
    copy_to: int
    pieces: tuple[Piece, ...] = ()
    shift: int | None = None
    timed: bool = True
    source_compacted: bool = False
    copy_compacted: bool = False
    source_start: int = 0
    copy_start: int = 0
    by_time: bool = False
    skipped_producers: tuple[int, ...] = ()
    on_record: tuple[OnRecord, ...] = ()
    on_foreign: str = ""

    @property
    def key(self) -> "Key":
        return Key(self.topic, self.partition, self.bounds.first)

    def explain(self, kind: Kind, source: int, copy: int) -> str:
        """Return the cause on record for a difference, or ""."""
        for one in self.on_record:
            offset = source if one.side == "source" else copy
            if one.first <= offset < one.end:
                return one.cause
        if (kind == "missing" and self.copy_compacted) or (kind == "extra" and self.source_compacted):
            return "compaction"
        return ""


class Key(NamedTuple):
    """Identifies a chunk of an audit."""

    topic: str
    partition: int
    first: int


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
    if one.problem or one.first >= one.end:
        return []
    if map_of is None:
        return list(_without_map(one, request))
    return list(_mapped(one, map_of))


def _without_map(one: AuditedPartition, request: AuditRequest) -> Iterator[Chunk]:
    if request.relation == "order":
        whole = Bounds(one.source_start, one.source_end, one.source_start, one.source_end)
        yield _chunk(one, "order", whole, one.copy_start, one.copy_end, by_time=request.since_ms is not None)
        return
    for first in range(one.first, one.end, one.chunk_records):
        end = min(first + one.chunk_records, one.end)
        yield _chunk(one, "offset", Bounds(first, end, first, end), first, end)


def _mapped(one: AuditedPartition, map_of: Translator) -> Iterator[Chunk]:
    step = one.end - one.first if one.whole else one.chunk_records
    for low in range(one.first, one.end, step):
        known = _joined(map_of.pieces(low, min(low + step, one.end)))
        for first, end in known:
            near = map_of.pieces(max(0, first - MARGIN), end + MARGIN)
            inside = map_of.pieces(first, end)
            following = map_of.pieces(end, end + 1)
            source_to = following[0][1] if following and end < one.end else inside[-1][1] + inside[-1][2]
            bounds = Bounds(first, end, inside[0][1], source_to)
            copy_from, copy_to = (one.copy_start, one.copy_end) if one.whole else map_of.copies(first, end)
            straight = not one.whole and copy_to - copy_from == end - first
            shift = first - copy_from if straight else None
            yield _chunk(one, "map", bounds, copy_from, copy_to, pieces=tuple(Piece(*it) for it in near), shift=shift)


def _joined(pieces: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """Return the ranges of numbers that the pieces cover without interruption."""
    found: list[tuple[int, int]] = []
    for number, _, records in pieces:
        if found and found[-1][1] == number:
            found[-1] = found[-1][0], number + records
        else:
            found.append((number, number + records))
    return found


def _chunk(
    one: AuditedPartition,
    relation: Relation,
    bounds: Bounds,
    copy_from: int,
    copy_to: int,
    *,
    pieces: tuple[Piece, ...] = (),
    shift: int | None = None,
    by_time: bool = False,
) -> Chunk:
    ranges = {"source": (bounds.source_from, bounds.source_to), "destination": (copy_from, copy_to)}
    return Chunk(
        topic=one.topic,
        partition=one.partition,
        copy_topic=one.copy_topic,
        relation=relation,
        bounds=bounds,
        copy_from=copy_from,
        copy_to=copy_to,
        pieces=pieces,
        shift=shift,
        timed=one.timed,
        source_compacted=one.source_compacted,
        copy_compacted=one.copy_compacted,
        source_start=one.source_start,
        copy_start=one.copy_start,
        by_time=by_time,
        skipped_producers=one.skipped_producers,
        on_foreign=one.on_foreign,
        on_record=tuple(it for it in one.on_record if it.first < ranges[it.side][1] and it.end > ranges[it.side][0]),
    )


def sampled(chunks: Sequence[Chunk], rate: float, seed: str) -> list[Chunk]:
    """Return the chunks of one partition that a sample includes: the first, the last, each with an entry on record, each
    with a gap if few have one, and a share of the others that only the seed determines."""
    if rate >= 1 or len(chunks) <= 2:
        return list(chunks)
    with_gaps = {chunk.key for chunk in chunks if _has_gap(chunk)}
    always = {chunks[0].key, chunks[-1].key} | {chunk.key for chunk in chunks if chunk.on_record}
    if len(with_gaps) < FEW_GAPS * len(chunks):
        always |= with_gaps
    return [chunk for chunk in chunks if chunk.key in always or _draw(chunk.key, seed) < rate]


def _has_gap(chunk: Chunk) -> bool:
    first, end, source_from, source_to = chunk.bounds
    return source_to - source_from != end - first


def _draw(key: Key, seed: str) -> float:
    return zlib.crc32(f"{seed}/{key.topic}/{key.partition}/{key.first}".encode()) / 2**32


def unknown_records(one: AuditedPartition, map_of: Translator) -> int:
    """Return how many records of the range have source offsets that the map does not determine."""
    return one.end - one.first - sum(records for _, _, records in map_of.pieces(one.first, one.end))
