"""Reads both logs of a partition, batch by batch or record by record, as contents that can be compared."""

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from struct import Struct
from typing import NamedTuple

from strait.model import TopicPartition
from strait.net.partition_logs import PartitionLogs
from strait.planning.map_rebuild.entries import Logged, last_ascending, numbers
from strait.planning.map_rebuild.matching import Item, Open
from strait.wire.batch import CODEC_MASK, DELETE_HORIZON, HEADER_BYTES, LOG_APPEND_TIME, Batch
from strait.wire.legacy import read_legacy
from strait.wire.records import Record, read_records

_READ_BYTES = 4 << 20
_DIGEST_BYTES = 16
_OF_BATCH = Struct(">hqi")
_OF_RECORD = Struct(">qii")

Wanted = Callable[[Batch], bool]
Tell = Callable[[int, int], None]
"""Is called with the offset up to which a log was read, and the log's start offset."""


class SourceLog(NamedTuple):
    """The batches whose records were to be copied. ``epochs``: the leader epoch of each; ``start``: the first offset
    that the log holds; ``end``: its last stable offset."""

    batches: list[Item]
    epochs: list[int]
    start: int
    end: int


class CopyLog(NamedTuple):
    """The batches of the link. ``end``: the high watermark of the log."""

    batches: list[Item]
    end: int


def source_log(logs: PartitionLogs, place: TopicPartition, wanted: Wanted, tell: Tell) -> SourceLog:
    """Raises ClusterUnavailable, NotAuthorized, CorruptBatch."""
    found: list[Item] = []
    epochs: list[int] = []
    reading = _Reading(logs, place, committed=True)
    for batch in reading.batches(0, tell):
        item = _legacy(batch) if batch.magic < 2 else _item(batch)
        if item.records and wanted(batch):
            found.append(item)
            epochs.append(batch.leader_epoch)
    return SourceLog(found, epochs, reading.start, reading.end)


def copy_log(logs: PartitionLogs, place: TopicPartition, producer_id: int, tell: Tell) -> CopyLog:
    """Raises as `source_log`."""
    found: list[Item] = []
    logged: list[Logged] = []
    reading = _Reading(logs, place, committed=False)
    for batch in reading.batches(0, tell):
        if batch.magic == 2 and batch.producer_id == producer_id and batch.records:
            found.append(_item(batch))
            logged.append(Logged(batch.base_offset, batch.next_offset, batch.base_sequence))
    numbered = [item._replace(number=number) for item, number in zip(found, numbers(logged), strict=True)]
    return CopyLog(numbered[last_ascending(numbered) :], reading.end)


def source_records(
    logs: PartitionLogs, place: TopicPartition, at: Open, wanted: Wanted, *, with_time: bool
) -> list[Item]:
    """Return the records in a stretch, each as one item. Raises as `source_log`."""
    found: list[Item] = []
    if at.source_from < at.source_to:
        for batch in _Reading(logs, place, committed=True).batches(at.source_from, until=at.source_to):
            if batch.magic < 2 or (batch.records and wanted(batch)):
                found += _records(batch, at.source_from, at.source_to, with_time=with_time)
    return found


def copy_records(
    logs: PartitionLogs, place: TopicPartition, at: Open, batches: Sequence[Item], producer_id: int, *, with_time: bool
) -> list[Item]:
    """The link's records in a stretch. ``batches``: all of the link's. Raises as `source_log`."""
    shifts = {item.first: item.number - item.first for item in batches}
    found: list[Item] = []
    for batch in _Reading(logs, place, committed=False).batches(at.copy_from, until=at.copy_to):
        shift = shifts.get(batch.base_offset)
        if batch.producer_id == producer_id and batch.records and shift is not None:
            records = _records(batch, at.copy_from, at.copy_to, with_time=with_time)
            found += (record._replace(number=record.first + shift) for record in records)
    return found


class _Reading:
    """Reads a log in batches. ``start``, ``end``: of the log, once it was read."""

    def __init__(self, logs: PartitionLogs, place: TopicPartition, *, committed: bool) -> None:
        self._logs = logs
        self._place = place
        self._committed = committed
        self.start = self.end = 0

    def batches(self, first: int, tell: Tell | None = None, until: int = 1 << 62) -> Iterator[Batch]:
        at = first
        while at < until:
            part = self._logs.read_whole(self._place, at, _READ_BYTES, committed=self._committed)
            self.start, self.end = part.start, part.next
            for batch in part.batches:
                if batch.base_offset >= until:
                    return
                yield batch
            if part.ended:
                return
            at = part.next
            if tell is not None:
                tell(at, part.start)


def _item(batch: Batch) -> Item:
    return Item(batch.base_offset, batch.records, _digest(batch), whole=batch.whole, end=batch.next_offset)


def _legacy(batch: Batch) -> Item:
    records = read_legacy(batch.view)
    if not records:
        return Item(batch.base_offset, 0, None)
    first, last = records[0].offset, records[-1].offset
    return Item(first, len(records), None, whole=last - first == len(records) - 1, end=last + 1)


def _digest(batch: Batch) -> bytes | None:
    """Return a digest of all that stays unchanged when a batch is passed through."""
    if not batch.whole or batch.attributes & (LOG_APPEND_TIME | DELETE_HORIZON):
        return None
    digest = blake2b(batch.view[HEADER_BYTES:], digest_size=_DIGEST_BYTES)
    digest.update(_OF_BATCH.pack(batch.attributes & CODEC_MASK, batch.base_timestamp, batch.records))
    return digest.digest()


def _records(batch: Batch, first: int, end: int, *, with_time: bool) -> Iterator[Item]:
    for record in read_legacy(batch.view) if batch.magic < 2 else read_records(batch):
        if first <= record.offset < end:
            yield Item(record.offset, 1, _digest_of(record, with_time=with_time), end=record.offset + 1)


def _digest_of(record: Record, *, with_time: bool) -> bytes:
    """Return a digest of all that a reader sees of a record except its offset."""
    key, value = record.key, record.value
    lengths = (-1 if part is None else len(part) for part in (key, value))
    digest = blake2b(_OF_RECORD.pack(record.timestamp_ms if with_time else 0, *lengths), digest_size=_DIGEST_BYTES)
    digest.update(key or b"")
    digest.update(value or b"")
    if record.headers:
        digest.update(repr(record.headers).encode(errors="surrogatepass"))
    return digest.digest()
