"""What becomes of the batches that were fetched of one partition: pieces to send, in order. Pure.

A batch passes as it is wherever the destination takes it as it is. It is taken apart and rebuilt only where it must be:
records missing inside it (compaction, or a start in its middle), timestamps that only the source's broker knows, an old
format, more bytes than the destination topic takes, or so few records that a batch of its own costs the destination
more than rebuilding costs us.

The checksum of what passes is checked by the destination, so it is not looked at here; that of all else is, before
anything is decided for good. Whatever a damaged header makes of what follows it ends when the destination refuses that
batch.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from strait.errors import CorruptBatch
from strait.reasons import Reason
from strait.wire.batch import (
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Batch,
    check,
    parse,
    split_batches,
)
from strait.wire.joining import COMPILED, Row
from strait.wire.legacy import read_legacy
from strait.wire.merge import MERGE_BATCH_BYTES, MERGE_BATCHES, MERGED_BYTES, plain_row, put_together
from strait.wire.records import Record, build_batch, read_in_pieces, read_records, split_into
from strait.wire.shapes import (
    Built,
    Paused,
    Piece,
    Quarantined,
    Rules,
    Shape,
    Skipped,
    Stop,
    Stretch,
    Unjudged,
)

MERGE_RECORDS_PER_BATCH = 64
"""Where records are read and built anew to merge them: that costs a microsecond or two each, and a batch costs the
destination's broker about a hundred."""

PIECE_RECORDS = 20_000
"""So many records of a batch that is taken apart are in memory at a time: a few megabytes besides keys and values."""
TURN_RECORDS = 100_000
"""After so many the slot's other partitions have their turn."""

_OLD = 1  # formats 0 and 1: each message stands alone, or wraps others
_OLD_ATTRIBUTES_AT = 17


def shape(records: memoryview, position: int, aborted: Sequence[tuple[int, int]], rules: Rules) -> Iterator[Shape]:
    """Shape one partition's part of a fetch reply.

    Args:
        records: as the reply holds them; the last batch may be cut short.
        position: next source offset to copy. Whole batches are returned, so the first may begin before it.
        aborted: the reply's (producer id, first offset) of aborted transactions.

    Raises:
        CorruptBatch: nothing behind the batches yielded so far can be trusted.
    """
    row = plain_row(records, position, rules)
    if row is None:
        yield from _one_by_one(records, position, aborted, rules)
        return
    for item in put_together(row, rules):
        if isinstance(item, Piece):
            yield item
        else:
            yield from _apiece(list(split_batches(item, checked_to=rules.checked_to)), position, rules)
    yield Skipped(*row.end)


def _one_by_one(
    records: memoryview, position: int, aborted: Sequence[tuple[int, int]], rules: Rules
) -> Iterator[Shape]:
    done, epoch, left_out = position, -1, 0
    small: list[Batch] = []
    unjudged: frozenset[int] = frozenset()
    found = without_aborted(split_batches(records, checked_to=rules.checked_to), aborted)
    corrupt: CorruptBatch | None = None
    try:
        for batch in found:
            if batch.magic == 2 and batch.base_offset < done and done > position:
                raise CorruptBatch(f"batch at offset {batch.base_offset} follows one that ends at {done - 1}")
            empty = batch.magic == 2 and (batch.next_offset <= position or not batch.records)
            if rules.left_out is not None and not empty:
                verdict = rules.left_out.get(batch.producer_id)
                if verdict is None:
                    unjudged = _unjudged(chain([batch], found), rules.left_out)
                    break
                left_out += batch.records if verdict else 0
                empty = verdict
            if empty:
                check(batch)
            done, epoch = max(position, batch.next_offset), batch.leader_epoch
            if empty:
                continue
            if _may_merge(batch, position, rules):
                small.append(batch)
                continue
            before, small = small, []
            yield from _merged(before, position, rules)
            yield from _alone(batch, position, rules)
    except CorruptBatch as error:
        corrupt = error
    yield from _merged(small, position, rules)
    if corrupt is not None:  # told after what was read before it
        raise corrupt
    if done > position:
        yield Skipped(done, epoch, left_out)
    if unjudged:
        yield Unjudged(unjudged)


def _unjudged(rest: Iterable[Batch], judged: Mapping[int, bool]) -> frozenset[int]:
    """All of them, so that one look at the registry judges all that came."""
    found = set()
    with contextlib.suppress(CorruptBatch):  # which is told when its turn comes
        for batch in rest:
            if batch.records and batch.producer_id not in judged:
                found.add(batch.producer_id)
    return frozenset(found)


def without_aborted(found: Iterator[Batch], aborted: Sequence[tuple[int, int]]) -> Iterator[Batch]:
    """Markers and aborted batches keep their offsets but lose their records (the consumer's algorithm of KIP-98)."""
    begun = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    aborting: set[int] = set()
    for batch in found:
        while begun and begun[-1][1] <= batch.next_offset - 1:
            aborting.add(begun.pop()[0])
        if batch.attributes & CONTROL:  # whichever it is: the producer's transaction has ended here
            aborting.discard(batch.producer_id)
            yield batch._replace(records=0)
        elif batch.attributes & TRANSACTIONAL and batch.producer_id in aborting:
            yield batch._replace(records=0)
        else:
            yield batch


def _may_merge(batch: Batch, position: int, rules: Rules) -> bool:
    return batch.magic < 2 or (
        (not _many(batch) or _joins(batch))
        and batch.length <= MERGE_BATCH_BYTES
        and batch.base_offset >= position
        and not _touches(batch, rules)
    )


def _many(batch: Batch) -> bool:
    return batch.records > MERGE_RECORDS_PER_BATCH


def _joins(batch: Batch) -> bool:
    """Its records need not be read to merge it with others."""
    return COMPILED and batch.whole and not batch.attributes & ~TRANSACTIONAL


def _merged(small: list[Batch], position: int, rules: Rules) -> Iterator[Shape]:
    """Put small batches in a row together, if they are of one kind; a few alone are not worth it."""
    at = 0
    while at < len(small):
        kind, size, end = _kind(small[at]), 0, at
        while end < len(small) and size < MERGED_BYTES and _kind(small[end]) == kind:
            size += len(small[end].view)
            end += 1
        group = small[at:end]
        at = end
        if kind[0] == _OLD:
            found = [record for batch in group for record in read_legacy(batch.view) if record.offset >= position]
            yield from _rebuilt(found, group[-1], b"", rules, Built.OLD_FORMAT)
            continue
        for item in _together(group, rules):
            if isinstance(item, Piece):
                yield item
            else:
                yield from _apiece(item, position, rules)


def _together(group: Sequence[Batch], rules: Rules) -> Iterator[Piece | Sequence[Batch]]:
    """The piece that they make, or all of them, for which another way must be found."""
    row = None
    if len(group) >= MERGE_BATCHES and not _codec(group[0]):
        row = Row.of(memoryview(b"".join(batch.view for batch in group)), MERGE_BATCHES, besides=TRANSACTIONAL)
    for item in (None,) if row is None else put_together(row, rules):
        yield item if isinstance(item, Piece) else group


def _apiece(group: Sequence[Batch], position: int, rules: Rules) -> Iterator[Shape]:
    """Batches that cannot simply be put together: as they are, if they are few or not that small, else read and built
    anew."""
    if len(group) < MERGE_BATCHES or any(map(_many, group)):
        for batch in group:
            yield from _alone(batch, position, rules)
    else:
        for batch in group:
            check(batch)
        records = [record for batch in group for record in read_records(batch)]
        crcs = b"".join(batch.crc_bytes for batch in group)
        yield from _rebuilt(records, group[-1], crcs, rules, Built.MERGED)


def _kind(batch: Batch) -> tuple[int, int, bool]:
    """Format, codec, and whether only joining it is worth it."""
    return (_OLD if batch.magic < 2 else batch.magic), _codec(batch), _many(batch)


def _codec(batch: Batch) -> int:
    return (batch.attributes if batch.magic == 2 else batch.view[_OLD_ATTRIBUTES_AT]) & CODEC_MASK


def _alone(batch: Batch, position: int, rules: Rules) -> Iterator[Shape]:
    why = _why_apart(batch, position, rules)
    if why is None:
        yield _as_it_is(batch)
    else:
        yield from _taken_apart(batch, position, rules, why)


def _why_apart(batch: Batch, position: int, rules: Rules) -> Built | None:
    """None: it passes."""
    size = len(batch.view)
    if batch.base_offset < position or not batch.whole:
        return Built.INCOMPLETE
    if batch.attributes & LOG_APPEND_TIME:
        return Built.APPEND_TIME
    if size > rules.max_batch_bytes and (batch.records > 1 or size > rules.max_record_bytes):
        return Built.TOO_LARGE
    return Built.SINGLED_OUT if _touches(batch, rules) else None


def _as_it_is(batch: Batch) -> Piece:
    stretch = Stretch(batch.base_offset, batch.records)
    return Piece(batch, None, (stretch,), batch.next_offset, batch.crc_bytes, batch.leader_epoch)


def _taken_apart(batch: Batch, position: int, rules: Rules, why: Built) -> Iterator[Shape]:
    """Piece by piece, since a few hundred kilobytes may hold millions of records."""
    check(batch)
    held: list[Record] = []
    read = 0
    for piece in read_in_pieces(batch, PIECE_RECORDS):
        kept = [record for record in piece if record.offset >= position]
        if held and kept:
            yield from _rebuilt(held, batch, None, rules, why)
        held = kept or held
        read += len(piece)
        if read >= TURN_RECORDS:
            read = 0
            yield Paused()
    yield from _rebuilt(held, batch, batch.crc_bytes, rules, why)


def _touches(batch: Batch, rules: Rules) -> bool:
    """Some of its records are treated one by one."""
    if not rules.picky:
        return False
    first, behind = rules.apart
    return (batch.base_offset < behind and batch.next_offset > first) or any(
        batch.base_offset <= offset < batch.next_offset for offset in rules.quarantined
    )


def _rebuilt(records: Sequence[Record], ending: Batch, crcs: bytes | None, rules: Rules, why: Built) -> Iterator[Shape]:
    """Build batches of these records, which end with batch ``ending``; the last of them carries the source's CRCs.
    Without CRCs more of that batch follows."""
    chosen = _codec(ending) if rules.codec is None else rules.codec
    parts = list(_parts(records, chosen, rules))
    for at, part in enumerate(parts):
        if isinstance(part, Quarantined):
            yield part
            continue
        data, held = part
        last = crcs is not None and at == len(parts) - 1
        behind = ending.next_offset if last else held[-1].offset + 1
        if len(data) > rules.max_record_bytes and len(held) == 1:
            text = f"{len(data)} bytes, and the destination topic takes {rules.max_record_bytes}"
            yield Stop(held[0].offset, Reason.BATCH_TOO_LARGE, f"the record at offset {held[0].offset} needs {text}")
            return
        of_source = (crcs or b"") if last else b""
        epoch = ending.leader_epoch
        yield Piece(parse(memoryview(data)), data, _stretches(held), behind, of_source, epoch, why)


def _parts(
    records: Sequence[Record], codec: int, rules: Rules
) -> Iterator["tuple[bytearray, Sequence[Record]] | Quarantined"]:
    """The batches to build, each with its records, and between them those that are quarantined."""
    first, behind = rules.apart
    together: list[Record] = []
    for record in records:
        why = rules.quarantined.get(record.offset)
        alone = first <= record.offset < behind
        if together and (why is not None or alone):
            yield from _sized(together, codec, rules)
            together = []
        if why is not None:
            yield Quarantined(record, *why)
        elif alone:
            yield build_batch([record], codec), [record]
        else:
            together.append(record)
    if together:
        yield from _sized(together, codec, rules)


def _sized(records: Sequence[Record], codec: int, rules: Rules) -> Iterator[tuple[bytearray, Sequence[Record]]]:
    at = 0
    for data in split_into(records, codec, rules.max_batch_bytes):
        count = parse(memoryview(data)).records
        yield data, records[at : at + count]
        at += count


def _stretches(records: Sequence[Record]) -> list[Stretch]:
    """Consecutive source offsets, run by run."""
    found: list[Stretch] = []
    first = behind = records[0].offset
    for record in records:
        if record.offset != behind:
            found.append(Stretch(first, behind - first))
            first = record.offset
        behind = record.offset + 1
    found.append(Stretch(first, behind - first))
    return found
