"""Holds the destination's last record of a partition against the source's record that the map says it is."""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from strait.engine.channel import Channel
from strait.engine.codes import name
from strait.engine.partition import Partition, Repetition
from strait.engine.reading import FIRST_BATCH_BYTES, read_at
from strait.offset_map import SEQUENCE_MODULUS
from strait.wire import fetch
from strait.wire.batch import CONTROL, Batch, split_batches
from strait.wire.records import Record, read_records

_SEARCH_BYTES = 1 << 20
_OUT_OF_RANGE = 1

Decide = Callable[[int | None], None]
"""Gets the source's leader epoch of the record if both sides have it; None if they do not."""


class _Read(NamedTuple):
    """What is at an offset: a record and its leader epoch, or whether the record is ``gone`` for good."""

    record: Record | None
    epoch: int
    gone: bool


_GONE = _Read(None, -1, gone=True)


class Verification:
    """Compares the record at destination offset ``copied_at`` with that at source offset ``source_at``. Ends in
    ``decide(epoch)`` or ``failed(cause)``, once. A record that is no more, on either side, is not the same.

    ``among``: where others write into the copy, producer id and sequence of its record, which is then looked for from
    ``copied_at`` on.
    """

    def __init__(
        self,
        partition: Partition,
        copied_at: int,
        source_at: int,
        decide: Decide,
        failed: Callable[[str], None],
        among: tuple[int, int] | None = None,
    ) -> None:
        self._among = among
        self._partition = partition
        self._copied_at = copied_at
        self._source_at = source_at
        self._decide = decide
        self._failed = failed

    def start(self, source: Channel, destination: Channel) -> None:
        """Read the copy first; it is the one that must be there."""
        partition = self._partition

        def take_copy(copy: _Read) -> None:
            if copy.record is not None:
                self._read(source, partition.source_id, partition.topic, self._source_at, compare(copy.record))
            elif copy.gone:
                self._decide(None)
            else:
                self._failed(f"the destination does not show offset {self._copied_at} yet")

        def compare(copy: Record) -> Callable[[_Read], None]:
            def take_original(original: _Read) -> None:
                if original.record is not None and original.record[compared:] == copy[compared:]:
                    self._decide(original.epoch)
                elif original.record is not None or original.gone:
                    self._decide(None)
                else:
                    self._ask_whether_it_ends(source)

            return take_original

        compared = (
            2 if partition.policy.destination_append_time else 1
        )  # all but the offset, and a time that is not ours

        self._read(
            destination, partition.destination_id, partition.destination, self._copied_at, take_copy, self._among
        )

    def _ask_whether_it_ends(self, source: Channel) -> None:
        """Nothing is shown at its place in the source: the log ends there, or its leader is new and does not know yet what
        all replicas have. Only a log that ends there refuses the offset behind."""
        partition, behind = self._partition, self._source_at + 1

        def on_read(code: int, _: fetch.Fetched | None) -> None:
            if code == _OUT_OF_RANGE:
                self._decide(None)
            else:
                self._failed(name(code) if code else f"the source does not show offset {self._source_at} yet")

        read_at(
            source,
            partition.topic,
            partition.source_id,
            partition.number,
            behind,
            FIRST_BATCH_BYTES,
            on_read=on_read,
            on_lost=self._failed,
        )

    def _read(
        self,
        channel: Channel,
        topic_id: UUID,
        topic: str,
        offset: int,
        take: Callable[[_Read], None],
        among: tuple[int, int] | None = None,
    ) -> None:
        behind = offset

        def on_read(code: int, item: fetch.Fetched | None) -> None:
            nonlocal behind
            found = _GONE
            if item is not None and not code:
                if among is None:
                    found = _record_at(offset, item.records)
                else:
                    found, behind = _record_of(*among, item.records, offset)
            if code and code != _OUT_OF_RANGE:
                self._failed(name(code))
            elif among is not None and found.record is None and behind > offset:
                self._read(channel, topic_id, topic, behind, take, among)
            else:
                take(found)

        most_bytes = FIRST_BATCH_BYTES if among is None else _SEARCH_BYTES
        number = self._partition.number
        read_at(channel, topic, topic_id, number, offset, most_bytes, on_read=on_read, on_lost=self._failed)


def verify_repetition(
    partition: Partition,
    repetition: Repetition,
    destination: Channel,
    decide: Callable[[bool], None],
    failed: Callable[[str], None],
) -> None:
    """Whether the batch that stands in the copy is the one that was sent. Where compaction has rewritten it or taken it away
    nobody knows: then it is not. Ends in one of the two, once."""

    def on_read(code: int, item: fetch.Fetched | None) -> None:
        if code and code != _OUT_OF_RANGE:
            failed(name(code))
            return
        batch = None if code or item is None else next(split_batches(item.records), None)
        decide(batch is not None and batch.base_offset == repetition.offset and batch.crc == repetition.crc)

    read_at(
        destination,
        partition.destination,
        partition.destination_id,
        partition.number,
        repetition.offset,
        FIRST_BATCH_BYTES,
        on_read=on_read,
        on_lost=failed,
    )


def _record_at(offset: int, records: memoryview) -> _Read:
    """The record, or whether it is gone: there is something at or behind its place."""
    batch = next(split_batches(records), None)
    if batch is None:
        return _Read(None, -1, gone=False)
    if batch.magic < 2 or batch.attributes & CONTROL:
        return _GONE
    return _record_in(batch, offset)


def _record_of(producer_id: int, sequence: int, records: memoryview, offset: int) -> tuple[_Read, int]:
    """The record with this sequence on the wire, if it is among these, and the offset behind those that were looked at."""
    behind = offset
    for batch in split_batches(records):
        behind = batch.next_offset
        place = (sequence - batch.base_sequence) % SEQUENCE_MODULUS
        if batch.magic == 2 and batch.producer_id == producer_id and place <= batch.last_offset_delta:
            return _record_in(batch, batch.base_offset + place), behind
    return _GONE, behind


def _record_in(batch: Batch, offset: int) -> _Read:
    record = next((record for record in read_records(batch) if record.offset == offset), None)
    return _Read(record, batch.leader_epoch, gone=True)
