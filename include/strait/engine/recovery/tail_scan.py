"""Reads the tail of a destination log for the link's last batch, if the broker's producer state has expired."""

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from strait.engine.partition.partition import Partition
from strait.engine.recovery.decision import last_sequence_of
from strait.engine.recovery.tail import Tail
from strait.net.channel import Channel
from strait.net.event_loop import Loop
from strait.net.tasks import AnswerError, Future, fork, read
from strait.state.offset_map import SEQUENCE_MODULUS
from strait.wire import error_codes, fetch
from strait.wire.batch import CONTROL, Batch, split_batches

_READ_BYTES = 2 << 20
_AT_ONCE = 4
_SEGMENT_OFFSETS = 100_000
"""A long tail is read in segments of this many offsets, a few at a time."""
_FIRST_OFFSETS = 1_000
"""Reading back from the end of a log starts with this many offsets and quadruples them each time."""


class ReadRefused(AnswerError):
    """The broker rejects the read; ``code`` is Kafka's error."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def scan(
    loop: Loop,
    channel: Channel,
    partition: Partition,
    producer_id: int,
    start: int,
    end: int,
    progress: Callable[[Tail, int], None],
) -> Tail:
    """Return the tail in [``start``, ``end``), none of which is deleted yet.

    The last batch alone suffices if it is the link's, or if it is not and no other producer may write. ``progress``
    gets the tail seen so far, and the offset up to which it was read. Raises RequestLost, ReadRefused.
    """
    if start >= end:
        return Tail(start)
    read_segment = partial(_read_segment, loop, channel, partition, producer_id)
    last = await read_segment(end - 1, end)
    if last.last_sequence is not None or (last.foreign >= 0 and partition.policy.on_foreign == "halt"):
        return last._replace(start=start)
    seen, at = Tail(start), start
    while at < end:
        to = min(at + _AT_ONCE * _SEGMENT_OFFSETS, end)
        seen, at = seen.joined(await _read_part(loop, read_segment, at, to)), to
        progress(seen, at)
    return seen


async def scan_back(
    loop: Loop,
    channel: Channel,
    partition: Partition,
    producer_id: int,
    start: int,
    end: int,
    confirmed: Mapping[int, int],
    progress: Callable[[int], None],
) -> Tail:
    """Return the tail in [``start``, ``end``), read from its end back to a record at its ``confirmed`` offset (wire
    sequence -> destination offset). ``progress`` gets the offset down to which it was read. Raises RequestLost,
    ReadRefused."""
    read_segment = partial(_read_segment, loop, channel, partition, producer_id, confirmed=confirmed)
    seen, at, offsets = Tail(end), end, _FIRST_OFFSETS
    while start < at and not seen.intact:
        low = max(start, at - offsets)
        seen = (await _read_part(loop, read_segment, low, at)).joined(seen)
        at, offsets = low, min(4 * offsets, _AT_ONCE * _SEGMENT_OFFSETS)
        progress(at)
    return seen


async def _read_part(
    loop: Loop, read_segment: "Callable[[int, int], Coroutine[Future[Any], None, Tail]]", start: int, end: int
) -> Tail:
    """Read the segments of this part concurrently, so that their round trips overlap."""
    reads = [
        fork(loop, read_segment(low, min(low + _SEGMENT_OFFSETS, end))) for low in range(start, end, _SEGMENT_OFFSETS)
    ]
    seen = Tail(start)
    for reading in reads:
        seen = seen.joined(await reading)
    return seen


async def _read_segment(
    loop: Loop,
    channel: Channel,
    partition: Partition,
    producer_id: int,
    start: int,
    end: int,
    *,
    confirmed: Mapping[int, int] = {},
) -> Tail:
    at, before = start, -1

    def take(code: int, item: fetch.Fetched | None) -> Tail:
        nonlocal at
        if code or item is None:
            raise ReadRefused(code)
        if item.high_watermark < end:  # a new leader, which shows less than the log held when its end was queried
            raise ReadRefused(error_codes.NOT_LEADER_OR_FOLLOWER)
        found = Tail(start)
        for batch in split_batches(item.records):
            at = batch.next_offset
            if batch.base_offset >= end:
                break
            if batch.producer_id != producer_id:
                found = found._replace(foreign=batch.base_offset)
            elif not batch.attributes & CONTROL:
                found = found.joined(_of_batch(batch, confirmed))
        return found

    seen = Tail(start)
    most_bytes = _READ_BYTES if end - start > 1 else 1
    topic = partition.destination, partition.destination_id
    while before < at < end:  # a reply without a batch: compaction has left nothing up to the end
        before = at
        seen = seen.joined(await read(loop, channel, *topic, partition.number, at, most_bytes, take))
    return seen


def _of_batch(batch: Batch, confirmed: Mapping[int, int]) -> Tail:
    """Return the tail that consists of one batch of the link."""
    last = last_sequence_of(batch)
    intact = any(
        0 <= (place := (sequence - batch.base_sequence) % SEQUENCE_MODULUS) <= batch.last_offset_delta
        and offset == batch.base_offset + place
        for sequence, offset in confirmed.items()
    )
    return Tail(batch.base_offset, last, batch.next_offset - 1, -1, batch.base_sequence, intact=intact)
