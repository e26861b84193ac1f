"""Converts the batches that were fetched from one partition to pieces to send, in order. Pure.

A batch is passed through unchanged if the destination accepts it unchanged. It is taken apart and rebuilt only if
necessary: records are missing inside it (compaction, or a start in its middle), only the source's broker knows its
timestamps, its format is old, it has more bytes than the destination topic accepts, or it has so few records that a
separate batch costs the destination more than rebuilding costs us.

The destination verifies the checksum of a batch that is passed through, so it is not verified here; that of any other
batch is, before any final decision. If a damaged header causes wrong decisions on the batches after it, these end when
the destination rejects the damaged batch.
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
"""Batches with more records are not decoded and rebuilt to merge them: that costs 1 to 2 µs for each record, and a
batch costs the destination's broker about 100 µs."""

MERGED_PLAIN_BYTES = 4 << 20
"""Of keys and values, from which on nothing more is merged: 100 bytes that are compressed may hold a megabyte."""

PIECE_RECORDS = 20_000
"""Records in memory at a time while a batch is taken apart: a few megabytes besides keys and values."""
TURN_RECORDS = 100_000
"""After this many records of a batch that is taken apart, the slot's other partitions have their turn."""

_OLD = 1  # formats 0 and 1: each message is separate, or wraps others
_OLD_ATTRIBUTES_AT = 17


def shape(records: memoryview, position: int, aborted: Sequence[tuple[int, int]], rules: Rules) -> Iterator[Shape]:
    """Shape one partition's part of a fetch reply.

    Args:
        records: as the reply holds them; the last batch may be cut short.
        position: next source offset to copy. Brokers return whole batches, so the first may start before it.
        aborted: the reply's (producer ID, first offset) of aborted transactions.

    Raises:
        CorruptBatch: no data after the batches yielded so far can be trusted.
    """
    row = plain_row(records, position, rules)
    if row is None:
        yield from _one_by_one(records, position, aborted, rules)
        return
    for item in put_together(row, rules):
        if isinstance(item, Piece):
            yield item
        else:
            view = row.data[row.at[item.start] : row.at[item.stop]]
            yield from _apiece(list(split_batches(view, checked_to=rules.checked_to)), position, rules)
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
    if corrupt is not None:  # raised after the batches before it were yielded
        raise corrupt
    if done > position:
        yield Skipped(done, epoch, left_out)
    if unjudged:
        yield Unjudged(unjudged)


def _unjudged(rest: Iterable[Batch], judged: Mapping[int, bool]) -> frozenset[int]:
    """Return all unjudged producer IDs, so that one registry lookup judges all fetched batches."""
    found = set()
    with contextlib.suppress(CorruptBatch):  # raised when that batch is reached
        for batch in rest:
            if batch.records and batch.producer_id not in judged:
                found.add(batch.producer_id)
    return frozenset(found)


def without_aborted(found: Iterator[Batch], aborted: Sequence[tuple[int, int]]) -> Iterator[Batch]:
    """Yield the batches; markers and aborted ones keep their offsets but lose their records (the consumer's algorithm
    of KIP-98)."""
    begun = sorted(aborted, key=lambda transaction: transaction[1], reverse=True)
    aborting: set[int] = set()
    for batch in found:
        while begun and begun[-1][1] <= batch.next_offset - 1:
            aborting.add(begun.pop()[0])
        if batch.attributes & CONTROL:  # commit or abort: the producer's transaction ends here
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
    """Return whether its records need not be decoded to merge it with others."""
    return COMPILED and batch.whole and not batch.attributes & ~TRANSACTIONAL


def _merged(small: list[Batch], position: int, rules: Rules) -> Iterator[Shape]:
    """Merge consecutive small batches of one kind; merging only a few of them is not worth it."""
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
            yield from rebuilt(found, group[-1], b"", rules, Built.OLD_FORMAT)
            continue
        for item in _together(group, rules):
            if isinstance(item, Piece):
                yield item
            else:
                yield from _apiece(item, position, rules)


def _together(group: Sequence[Batch], rules: Rules) -> Iterator[Piece | Sequence[Batch]]:
    """Yield the pieces that they form, and batches that must be handled otherwise."""
    row = None
    if len(group) >= MERGE_BATCHES and not _codec(group[0]):
        row = Row.of(memoryview(b"".join(batch.view for batch in group)), MERGE_BATCHES, besides=TRANSACTIONAL)
    for item in (slice(None),) if row is None else put_together(row, rules):
        yield item if isinstance(item, Piece) else group[item]


def _apiece(group: Sequence[Batch], position: int, rules: Rules) -> Iterator[Shape]:
    """Yield the shapes of batches that cannot simply be joined: each alone if they are few or not that small, else
    decoded and rebuilt as one."""
    if len(group) < MERGE_BATCHES or any(map(_many, group)):
        for batch in group:
            yield from _alone(batch, position, rules)
    else:
        for batch in group:
            check(batch)
        held: list[Record] = []
        first = size = 0
        for behind, batch in enumerate(group, 1):
            found = read_records(batch)
            held += found
            size += sum(len(record.key or b"") + len(record.value or b"") for record in found)
            if size >= MERGED_PLAIN_BYTES or behind == len(group):
                crcs = b"".join(one.crc_bytes for one in group[first:behind])
                yield from rebuilt(held, batch, crcs, rules, Built.MERGED)
                held, first, size = [], behind, 0


def _kind(batch: Batch) -> tuple[int, int, bool]:
    """Return format, codec, and whether only joining it is worth it."""
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
    """Return why the batch must be rebuilt; None: it is passed through."""
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
    """Rebuild a batch piece by piece, since a few hundred kilobytes may hold millions of records."""
    check(batch)
    held: list[Record] = []
    read = 0
    for piece in read_in_pieces(batch, PIECE_RECORDS):
        kept = [record for record in piece if record.offset >= position]
        if held and kept:
            yield from rebuilt(held, batch, None, rules, why)
        held = kept or held
        read += len(piece)
        if read >= TURN_RECORDS:
            read = 0
            yield Paused()
    yield from rebuilt(held, batch, batch.crc_bytes, rules, why)


def _touches(batch: Batch, rules: Rules) -> bool:
    """Return whether some of its records are treated individually."""
    if not rules.picky:
        return False
    first, behind = rules.apart
    return (batch.base_offset < behind and batch.next_offset > first) or any(
        batch.base_offset <= offset < batch.next_offset for offset in rules.quarantined
    )


def rebuilt(records: Sequence[Record], ending: Batch, crcs: bytes | None, rules: Rules, why: Built) -> Iterator[Shape]:
    """Build batches from these records, which end with batch ``ending``; the last one built carries the source's CRCs.
    Without CRCs, more of that batch follows."""
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
    """Yield the batches to build, each with its records, and between them the quarantined records."""
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
    """Return the stretches of consecutive source offsets."""
    found: list[Stretch] = []
    first = behind = records[0].offset
    for record in records:
        if record.offset != behind:
            found.append(Stretch(first, behind - first))
            first = record.offset
        behind = record.offset + 1
    found.append(Stretch(first, behind - first))
    return found
