"""Compares the last record of a destination partition with the source records that the offset map names, as a link does
when it starts: the source may have lost that record, and the map may name a position at which nothing was copied."""

from collections.abc import Iterator

from strait.control.resumption import ResumePoint
from strait.model import TopicPartition
from strait.net.partition_logs import PartitionLogs
from strait.state.offset_map import SEQUENCE_MODULUS, candidates, covering, destination_offset, wire_sequence
from strait.state.unchanged_parts import UnchangedParts
from strait.wire.batch import CONTROL, Batch
from strait.wire.records import Record, read_records

_READ_BYTES = 1 << 20
_MOST_READS = 16
"""Most reads to find a record: foreign records may have moved it to a later offset."""


def misplaced(point: ResumePoint, producer_id: int, source: PartitionLogs, destination: PartitionLogs) -> str:
    """Return why the link would not continue at ``point``; "" if it would, or if one side no longer holds the record.

    Raises:
        ClusterUnavailable, NotAuthorized, CorruptBatch
    """
    begun = [run for run in point.runs if run.sequence_base < point.written]
    if point.offset is None or not begun:
        return ""  # nothing was copied yet
    last = point.written - 1
    copied = copied_record(
        destination, point.copy, destination_offset(covering(begun, last), last), (producer_id, last)
    )
    if copied is None:
        return ""
    named = candidates(begun, point.written)
    original = _record(source, point.place, named[0] - 1)
    unchanged = UnchangedParts.of(point.topic.policy)
    if original is None or unchanged.content(original) == unchanged.content(copied):
        return ""
    return (
        f"the last record copied, at destination offset {copied.offset:,}, is not the source's at {named[0] - 1:,}, so "
        "the source may have been truncated"
    )


def copied_record(logs: PartitionLogs, copy: TopicPartition, offset: int, producer: tuple[int, int]) -> Record | None:
    """Return a link's record from a destination partition; None if it is not found from ``offset`` on.

    Args:
        producer: the link's producer ID, and the record's number.
    """
    producer_id, number = producer
    for batch in _batches(logs, copy, offset):
        place = (wire_sequence(number) - batch.base_sequence) % SEQUENCE_MODULUS
        if batch.magic == 2 and batch.producer_id == producer_id and place <= batch.last_offset_delta:
            return _at(batch, batch.base_offset + place)
    return None


def _record(logs: PartitionLogs, place: TopicPartition, offset: int) -> Record | None:
    batch = next(_batches(logs, place, offset), None)
    return None if batch is None or batch.magic != 2 else _at(batch, offset)


def _batches(logs: PartitionLogs, place: TopicPartition, at: int) -> Iterator[Batch]:
    """Yield the batch that holds an offset, and some after it; none if the log does not hold it."""
    for _ in range(_MOST_READS):
        part = logs.read_whole(place, at, _READ_BYTES, committed=False)
        yield from part.batches
        if part.ended or part.next <= at:
            return
        at = part.next


def _at(batch: Batch, offset: int) -> Record | None:
    if batch.attributes & CONTROL or not batch.base_offset <= offset < batch.next_offset:
        return None
    return next((record for record in read_records(batch) if record.offset == offset), None)
