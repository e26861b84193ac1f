"""Holds the destination's last record of a partition against the source's record that the map says it is."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from strait.engine import codes
from strait.engine.channel import Channel
from strait.engine.partition import Partition, Repetition
from strait.engine.reading import FIRST_BATCH_BYTES, read_at
from strait.offset_map import SEQUENCE_MODULUS
from strait.reasons import Reason
from strait.wire import fetch
from strait.wire.batch import CONTROL, Batch, split_batches
from strait.wire.records import Record, read_records

_SEARCH_BYTES = 1 << 20
_OUT_OF_RANGE = 1

Decide = Callable[[int | None], None]
"""Gets the source's leader epoch of the record if both sides have it; None if they do not."""
Failed = Callable[[codes.Answer, str], None]
"""Gets what to do about it, with the reason code of the side that did not answer, and the cause."""


class _Read(NamedTuple):
    """What is at an offset: a record and its leader epoch, or whether the record is ``gone`` for good."""

    record: Record | None
    epoch: int
    gone: bool


_GONE = _Read(None, -1, gone=True)


class _Side(NamedTuple):
    """Where one of the two records is read, and what its broker's error codes mean."""

    channel: Channel
    topic: str
    topic_id: bytes
    answers: Mapping[int, codes.Answer]
    unreachable: Reason

    def trouble(self, code: int = 0) -> codes.Answer:
        return codes.answer(self.answers, code, self.unreachable)


def _source(partition: Partition, channel: Channel) -> _Side:
    return _Side(channel, partition.topic, partition.source_id, codes.FETCH, Reason.SOURCE_UNREACHABLE)


def _copy(partition: Partition, channel: Channel) -> _Side:
    return _Side(
        channel, partition.destination, partition.destination_id, codes.PRODUCE, Reason.DESTINATION_UNREACHABLE
    )


class Verification:
    """Compares the record at destination offset ``copied_at`` with that at source offset ``source_at``. Ends in
    ``decide(epoch)`` or ``failed(answer, cause)``, once. A record that is no more, on either side, is not the same.

    ``among``: where others write into the copy, producer id and sequence of its record, which is then looked for from
    ``copied_at`` on.
    """

    def __init__(
        self,
        partition: Partition,
        copied_at: int,
        source_at: int,
        decide: Decide,
        failed: Failed,
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
        original_side, copy_side = _source(self._partition, source), _copy(self._partition, destination)

        def take_copy(copy: _Read) -> None:
            if copy.record is not None:
                self._read(original_side, self._source_at, compare(copy.record))
            elif copy.gone:
                self._decide(None)
            else:
                self._failed(copy_side.trouble(), f"the destination does not show offset {self._copied_at} yet")

        def compare(copy: Record) -> Callable[[_Read], None]:
            def take_original(original: _Read) -> None:
                if original.record is not None and original.record[compared:] == copy[compared:]:
                    self._decide(original.epoch)
                elif original.record is not None or original.gone:
                    self._decide(None)
                else:
                    self._ask_whether_it_ends(original_side)

            return take_original

        # all but the offset, and a time that is not ours
        compared = 2 if self._partition.policy.destination_append_time else 1

        self._read(copy_side, self._copied_at, take_copy, self._among)

    def _ask_whether_it_ends(self, side: _Side) -> None:
        """Nothing is shown at its place in the source: the log ends there, or its leader is new and does not know yet what
        all replicas have. Only a log that ends there refuses the offset behind."""

        def take(code: int, _: fetch.Fetched | None) -> None:
            if code == _OUT_OF_RANGE:
                self._decide(None)
            else:
                cause = codes.name(code) if code else f"the source does not show offset {self._source_at} yet"
                self._failed(side.trouble(code), cause)

        self._ask(side, self._source_at + 1, FIRST_BATCH_BYTES, take)

    def _read(
        self, side: _Side, offset: int, take: Callable[[_Read], None], among: tuple[int, int] | None = None
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
                self._failed(side.trouble(code), codes.name(code))
            elif among is not None and found.record is None and behind > offset:
                self._read(side, behind, take, among)
            else:
                take(found)

        self._ask(side, offset, FIRST_BATCH_BYTES if among is None else _SEARCH_BYTES, on_read)

    def _ask(
        self, side: _Side, offset: int, most_bytes: int, on_read: Callable[[int, fetch.Fetched | None], None]
    ) -> None:
        read_at(
            side.channel,
            side.topic,
            side.topic_id,
            self._partition.number,
            offset,
            most_bytes,
            on_read=on_read,
            on_lost=lambda cause: self._failed(side.trouble(), cause),
        )


def verify_repetition(
    partition: Partition,
    repetition: Repetition,
    destination: Channel,
    decide: Callable[[bool], None],
    failed: Failed,
) -> None:
    """Whether the batch that stands in the copy is the one that was sent. Where compaction has rewritten it or taken it away
    nobody knows: then it is not. Ends in one of the two, once."""
    side = _copy(partition, destination)

    def on_read(code: int, item: fetch.Fetched | None) -> None:
        if code and code != _OUT_OF_RANGE:
            failed(side.trouble(code), codes.name(code))
            return
        batch = None if code or item is None else next(split_batches(item.records), None)
        decide(batch is not None and batch.base_offset == repetition.offset and batch.crc == repetition.crc)

    read_at(
        side.channel,
        side.topic,
        side.topic_id,
        partition.number,
        repetition.offset,
        FIRST_BATCH_BYTES,
        on_read=on_read,
        on_lost=lambda cause: failed(side.trouble(), cause),
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
