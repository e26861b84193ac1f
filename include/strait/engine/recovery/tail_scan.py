"""Reads the tail of a destination log for the link's last batch, if the broker has forgotten the link's producer ID."""

from collections.abc import Callable

from strait.engine.partition.partition import Partition
from strait.engine.recovery.decision import Tail, last_sequence_of
from strait.net.channel import Channel
from strait.net.event_loop import Loop
from strait.net.tasks import AnswerError, fork, read
from strait.wire import error_codes, fetch
from strait.wire.batch import CONTROL, split_batches

_READ_BYTES = 2 << 20
_AT_ONCE = 4
_SEGMENT_OFFSETS = 100_000
"""A long tail is read in segments of so many offsets, a few at a time, so that the round trip does not count for each
reply."""


class ReadRefused(AnswerError):
    """The broker refuses to read; ``code`` is Kafka's error."""

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
    """What the log holds in [``start``, ``end``), none of which is deleted yet.

    The last batch decides alone if it is the link's; also if it is not, where no other producer may write. ``progress``
    gets what was seen so far, and up to which offset. Raises RequestLost, ReadRefused.
    """
    if start >= end:
        return Tail(start)
    last = await _read_segment(loop, channel, partition, producer_id, end - 1, end)
    if last.last_sequence is not None or (last.foreign >= 0 and partition.policy.on_foreign == "halt"):
        return last._replace(start=start)
    seen, at = Tail(start), start
    while at < end:
        segments = range(at, end, _SEGMENT_OFFSETS)[:_AT_ONCE]
        at = min(segments[-1] + _SEGMENT_OFFSETS, end)
        reads = [
            fork(loop, _read_segment(loop, channel, partition, producer_id, one, min(one + _SEGMENT_OFFSETS, end)))
            for one in segments
        ]
        for reading in reads:
            seen = _joined(seen, await reading)
        progress(seen, at)
    return seen


async def _read_segment(
    loop: Loop, channel: Channel, partition: Partition, producer_id: int, start: int, end: int
) -> Tail:
    at, before = start, -1

    def take(code: int, item: fetch.Fetched | None) -> Tail:
        nonlocal at
        if code or item is None:
            raise ReadRefused(code)
        if item.high_watermark < end:  # another leader: it shows less than was in the log when its end was asked for
            raise ReadRefused(error_codes.NOT_LEADER_OR_FOLLOWER)
        found = Tail(start)
        for batch in split_batches(item.records):
            at = batch.next_offset
            if batch.base_offset >= end:
                break
            if batch.producer_id != producer_id:
                found = found._replace(foreign=batch.base_offset)
            elif not batch.attributes & CONTROL:
                found = found._replace(last_sequence=last_sequence_of(batch), last_offset=batch.next_offset - 1)
        return found

    seen = Tail(start)
    while before < at < end:  # a reply without a batch: compaction has left nothing up to the end
        before = at
        seen = _joined(
            seen,
            await read(
                loop,
                channel,
                partition.destination,
                partition.destination_id,
                partition.number,
                at,
                _READ_BYTES if end - start > 1 else 1,
                take,
            ),
        )
    return seen


def _joined(one: Tail, following: Tail) -> Tail:
    newer = one if following.last_sequence is None else following
    return Tail(one.start, newer.last_sequence, newer.last_offset, max(one.foreign, following.foreign))
