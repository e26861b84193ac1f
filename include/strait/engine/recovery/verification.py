"""Compares the link's last record on the destination with the source record that the map names."""

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, TypeVar

from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Repetition
from strait.net import error_policy
from strait.net.channel import Channel
from strait.net.combined_reads import CombinedReads
from strait.net.event_loop import Loop
from strait.net.tasks import FIRST_BATCH_BYTES, AnswerError, RequestLost, read
from strait.reasons import Reason
from strait.state.offset_map import SEQUENCE_MODULUS
from strait.state.unchanged_parts import UnchangedParts
from strait.wire import error_codes, fetch
from strait.wire.batch import (
    CODEC_MASK,
    CONTROL,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    Batch,
    parse,
    split_batches,
)
from strait.wire.legacy import read_legacy
from strait.wire.records import Record, read_records

SEARCH_BYTES = 256 << 20
"""Among the records of other producers, the link's last record is searched for this far after its expected offset."""
_SEARCH_READ_BYTES = 1 << 20

T = TypeVar("T")


class Verdict(Enum):
    SAME = "both sides hold the record, and it is equal"
    DIFFERENT = "both sides hold a record, and they differ"
    GONE = "one side no longer holds the record"


class Verified(NamedTuple):
    """``epoch``: the source's leader epoch of the record; -1 unless the records are equal."""

    verdict: Verdict
    epoch: int = -1


class Unreadable(AnswerError):
    """One side does not return the record at present; a retry can succeed."""

    def __init__(self, answer: error_policy.Answer, cause: str) -> None:
        super().__init__(cause)
        self.answer = answer
        self.cause = cause


class CopyMissing(Exception):
    """The destination does not hold the record that was copied last, though nothing may have deleted it."""


class Copied(NamedTuple):
    """The destination batch that holds the link's last record, and the record's offset delta in it."""

    batch: Batch
    place: int

    @property
    def offset(self) -> int:
        return self.batch.base_offset + self.place


GONE = Verified(Verdict.GONE)
DIFFERENT = Verified(Verdict.DIFFERENT)


async def read_copied(
    loop: Loop,
    channel: Channel,
    partition: Partition,
    producer: tuple[int, int],
    offset: int,
    *,
    search: bool,
    together: CombinedReads | None = None,
) -> Copied | Verified:
    """Return the record with this producer ID and wire sequence, at ``offset`` on the destination.

    ``search``: other producers may have moved it to a later offset, by up to SEARCH_BYTES. Returns ``GONE`` if it was
    not found, ``DIFFERENT`` if another record is in its place. Raises Unreadable; with ``together``, which reads
    several partitions in one request, NotShown.
    """
    producer_id, sequence = producer
    at = offset

    def take(code: int, item: fetch.Fetched | None) -> Copied | Verified | None:
        nonlocal at
        if code == error_codes.OFFSET_OUT_OF_RANGE:
            return GONE
        if code:
            raise Unreadable(
                error_policy.answer(error_policy.PRODUCE, code, Reason.DESTINATION_UNREACHABLE), error_policy.name(code)
            )
        for batch in split_batches(item.records) if item else ():
            at = batch.next_offset
            place = (sequence - batch.base_sequence) % SEQUENCE_MODULUS
            if batch.magic == 2 and batch.producer_id == producer_id and place <= batch.last_offset_delta:
                return Copied(parse(memoryview(bytes(batch.view))), place)
            if not search:
                return GONE if batch.base_offset > offset else DIFFERENT
        return None

    size, before, searched = FIRST_BATCH_BYTES, -1, 0
    while before < at and searched < SEARCH_BYTES:
        before, searched = at, searched + size
        found = await _read(loop, channel, _copy_side(partition), partition, at, take, size, together)
        if found is not None:
            return found
        size = _SEARCH_READ_BYTES
    if at > offset:
        return GONE  # searched to the end of the readable records, or SEARCH_BYTES
    # Its leader has it, but returns only records that enough replicas have (KIP-966: min.insync.replicas).
    answer = error_policy.Answer(Reason.DESTINATION_NOT_ENOUGH_REPLICAS, error_policy.SHORTLY_SECONDS, refresh=True)
    raise Unreadable(answer, f"the destination does not show offset {offset} yet")


async def compare(
    loop: Loop,
    channel: Channel,
    partition: Partition,
    copied: Copied,
    source_at: int,
    together: CombinedReads | None = None,
) -> Verified:
    """Return whether the record at source offset ``source_at`` is the copied one, by all that both must have in common:
    everything, unless records are transformed. Raises Unreadable; with ``together`` NotShown."""
    common = UnchangedParts.of(partition.policy)

    def take(code: int, item: fetch.Fetched | None) -> Verified | None:
        if code == error_codes.OFFSET_OUT_OF_RANGE:
            return GONE
        if code:
            raise Unreadable(
                error_policy.answer(error_policy.FETCH, code, Reason.SOURCE_UNREACHABLE), error_policy.name(code)
            )
        for batch in split_batches(item.records) if item else ():
            if batch.magic == 2:
                return _judged(copied, batch, source_at, common)
            records = read_legacy(batch.view)
            original = next((record for record in records if record.offset == source_at), None)
            if original is not None:
                return _verdict(copied, original, -1, common)
            if records and records[-1].offset > source_at:
                return GONE
        return None

    def ends(code: int, _: fetch.Fetched | None) -> bool:
        return code == error_codes.OFFSET_OUT_OF_RANGE

    side = _source_side(partition)
    found = await _read(loop, channel, side, partition, source_at, take, together=together)
    if found is not None:
        return found
    # No record is returned at its offset: the log ends there, or a new leader does not know the high watermark yet.
    # Only a log that ends there rejects the next offset.
    if await _read(loop, channel, _source_side(partition), partition, source_at + 1, ends):
        return GONE
    raise Unreadable(
        error_policy.answer(error_policy.FETCH, 0, Reason.SOURCE_UNREACHABLE),
        f"the source does not show offset {source_at} yet",
    )


async def is_repetition(loop: Loop, channel: Channel, partition: Partition, repetition: Repetition) -> bool:
    """Return whether the batch on the destination is the one that was sent, by its checksum. False if compaction has
    rewritten or removed it, since that is then unknown. Raises Unreadable."""

    def take(code: int, item: fetch.Fetched | None) -> bool:
        if code and code != error_codes.OFFSET_OUT_OF_RANGE:
            raise Unreadable(
                error_policy.answer(error_policy.PRODUCE, code, Reason.DESTINATION_UNREACHABLE), error_policy.name(code)
            )
        batch = None if code or item is None else next(split_batches(item.records), None)
        return batch is not None and batch.base_offset == repetition.offset and batch.crc == repetition.crc

    return await _read(loop, channel, _copy_side(partition), partition, repetition.offset, take)


def _judged(copied: Copied, batch: Batch, source_at: int, common: UnchangedParts) -> Verified:
    if batch.attributes & CONTROL or batch.base_offset > source_at:
        return GONE
    if _passed(copied, batch, source_at):
        return Verified(Verdict.SAME, batch.leader_epoch)
    original = _record(batch, source_at)
    return GONE if original is None else _verdict(copied, original, batch.leader_epoch, common)


def _passed(copied: Copied, original: Batch, source_at: int) -> bool:
    """Return whether the batch was passed through unchanged, the usual case; then no record needs to be decoded."""
    copy = copied.batch
    return (
        copied.offset - copy.base_offset == source_at - original.base_offset
        and copy.records == original.records
        and copy.base_timestamp == original.base_timestamp
        and copy.attributes & CODEC_MASK == original.attributes & CODEC_MASK
        and not (copy.attributes | original.attributes) & LOG_APPEND_TIME
        and copy.view[HEADER_BYTES:] == original.view[HEADER_BYTES:]
    )


def _verdict(copied: Copied, original: Record, epoch: int, common: UnchangedParts) -> Verified:
    copy = _record(copied.batch, copied.offset)
    if copy is None:
        return GONE
    same = common.content(copy) == common.content(original)
    return Verified(Verdict.SAME, epoch) if same else DIFFERENT


def _record(batch: Batch, offset: int) -> Record | None:
    return next((record for record in read_records(batch) if record.offset == offset), None)


class _Side(NamedTuple):
    topic: str
    topic_id: bytes
    reason: Reason


def _copy_side(partition: Partition) -> _Side:
    return _Side(partition.destination, partition.destination_id, Reason.DESTINATION_UNREACHABLE)


def _source_side(partition: Partition) -> _Side:
    return _Side(partition.source_topic, partition.source_id, Reason.SOURCE_UNREACHABLE)


async def _read(
    loop: Loop,
    channel: Channel,
    side: _Side,
    partition: Partition,
    offset: int,
    take: Callable[[int, fetch.Fetched | None], T],
    most_bytes: int = FIRST_BATCH_BYTES,
    together: CombinedReads | None = None,
) -> T:
    try:
        if together is not None and most_bytes == FIRST_BATCH_BYTES:
            return await together.read(channel, side.topic, side.topic_id, partition.number, offset, take)
        return await read(loop, channel, side.topic, side.topic_id, partition.number, offset, most_bytes, take)
    except RequestLost as lost:
        raise Unreadable(error_policy.Answer(side.reason, error_policy.SOON_SECONDS), str(lost)) from lost
