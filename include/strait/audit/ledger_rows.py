"""Rows of the replication ledger by which the destination is checked without the source. Pure.

A row has the digest of the checksums of the batches that were sent, which the destination's brokers keep. It was made while
the source's batches were read, so the check needs no source, and works after the source has deleted them.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from strait.audit.chunks import Chunk, Mark
from strait.audit.comparing import Bounds
from strait.audit.plan import AuditedPartition, OnRecord
from strait.config.audit import AuditRequest

MOST_MARKS = 1_000


class LedgerRow(NamedTuple):
    """Records [``first``, ``end``) of the link in one partition, at the destination offsets [``copy_from``, ``copy_to``), which
    may hold other records, too. ``bytes``: their size, about."""

    first: int
    end: int
    copy_from: int
    copy_to: int
    digest: int
    bytes: int
    ended_at_ms: int


NUMBERS = (
    "sequence_from", "sequence_to", "destination_from", "destination_to", "copy_digest", "copy_digest_from", "bytes",
    "ended_at_ms",
)  # fmt: skip
"""The columns of the ledger that the check needs, besides those that name the partition."""


def row_of(columns: Mapping[str, int]) -> LedgerRow | None:
    """Return a row of the ledger as it can be checked; None if its digest covers no record. ``columns``: `NUMBERS`."""
    first, end, copy_from, copy_to, digest, digest_from, size, ended_at_ms = (columns[name] for name in NUMBERS)
    if digest < 0 or not 0 <= digest_from < end or copy_from < 0:
        return None
    copy_from = max(0, copy_from - max(0, first - digest_from))
    return LedgerRow(digest_from, end, copy_from, copy_to, digest, size, ended_at_ms)


def provable(rows: Iterable[LedgerRow], lost: Iterable[tuple[int, int]] = ()) -> list[LedgerRow]:
    """Return the rows that describe the destination as it is, in the order of their records. A later row supersedes earlier
    ones with the same records, which were written again.

    Args:
        lost: destination offsets that the destination lost, so that other records may be there now.
    """
    found: list[LedgerRow] = []
    for row in sorted(rows, key=lambda row: row.ended_at_ms):
        low = bisect_right(found, row.first, key=lambda one: one.end)
        high = bisect_left(found, row.end, key=lambda one: one.first)
        found[low:high] = [row]
    ranges = list(lost)
    return [row for row in found if not any(first < row.copy_to and end > row.copy_from for first, end in ranges)]


def with_rows(
    one: AuditedPartition, rows: Sequence[LedgerRow], verified_to: int, request: AuditRequest
) -> AuditedPartition:
    """Return a partition with the range that rows cover, and the numbers of records that none covers.

    Args:
        verified_to: number of the record up to which an audit has compared all; others before it need no row.
    """
    if one.problem or one.copy_start >= one.copy_end:
        return one
    known = provable(rows, _lost(one.on_record))
    kept, cut = usable(one, known, request), [row for row in known if row.copy_from < one.copy_start]
    if not kept:
        return one.model_copy(update={"problem": "the ledger has no digest of the records that the destination holds"})
    begin = max([one.copy_start, *(row.copy_to for row in cut)])
    before = 0 if verified_to > kept[0].first or request.since_ms is not None else max(0, kept[0].copy_from - begin)
    gaps = ((before.end, after.first) for before, after in pairwise(kept))
    return one.model_copy(
        update={
            "first": kept[0].first,
            "end": kept[-1].end,
            "deleted": max(0, begin - one.copy_start),
            "unknown": before + sum(max(0, end - max(first, verified_to)) for first, end in gaps),
            "tail": 0 if request.until_ms is not None else max(0, one.copy_end - kept[-1].copy_to),
        }
    )


def usable(one: AuditedPartition, known: Iterable[LedgerRow], request: AuditRequest) -> list[LedgerRow]:
    """Return the rows whose records the destination still has, of the requested time."""
    since, until = request.since_ms, request.until_ms
    return [
        row
        for row in known
        if one.copy_start <= row.copy_from
        and row.copy_to <= one.copy_end
        and (since is None or row.ended_at_ms >= since)
        and (until is None or row.ended_at_ms < until)
    ]


def ledger_chunks(one: AuditedPartition, rows: Iterable[LedgerRow], request: AuditRequest) -> list[Chunk]:
    """Return the chunks of a partition, in order: consecutive rows that are checked at a time."""
    if one.problem:
        return []
    kept = [
        row
        for row in usable(one, provable(rows, _lost(one.on_record)), request)
        if one.first <= row.first and row.end <= one.end  # others came after the audit was planned
    ]
    facts = one.model_copy(update={"on_record": ()})
    return [_chunk(facts, some) for some in _together(kept, request.chunk_bytes)]


def _chunk(one: AuditedPartition, rows: Sequence[LedgerRow]) -> Chunk:
    marks = tuple(Mark(row.first, row.end, row.copy_from, row.digest) for row in rows)
    whole = Chunk(one, "ledger", Bounds(rows[0].first, rows[-1].end), rows[0].copy_from, rows[-1].copy_to)
    return replace(whole, marks=marks)


def _together(rows: Iterable[LedgerRow], chunk_bytes: int) -> Iterator[list[LedgerRow]]:
    found: list[LedgerRow] = []
    size = 0
    for row in rows:
        follows = found and row.first == found[-1].end
        if found and (not follows or size + row.bytes > chunk_bytes or len(found) >= MOST_MARKS):
            yield found
            found, size = [], 0
        found.append(row)
        size += row.bytes
    if found:
        yield found


def _lost(on_record: Iterable[OnRecord]) -> list[tuple[int, int]]:
    return [(one.first, one.end) for one in on_record if one.side == "destination"]
