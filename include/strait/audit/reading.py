"""Reads a range of one partition's log for an audit: its batches as they are, and the stretches that cannot be read.

A damaged batch is passed on, since the comparison reports it. If bytes cannot be recognized as batches at all, reading
continues at the next offset at which they can.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from strait.audit.feed import Hole, Item
from strait.audit.recognizing import Recognized, recognize
from strait.errors import CorruptBatch
from strait.model import TopicPartition
from strait.net.partition_logs import PartitionLogs, RawPart
from strait.wire.batch import CONTROL, Batch, check, parse
from strait.wire.rebatch import without_aborted

READ_BYTES = 4 << 20
_MARKER_BYTES = 100  # a transaction marker takes 78
_REQUEST_SECONDS = 0.05
"""Under a budget, one request asks for no more than the budget allows in this time: a broker that sends megabytes together
delays the records of a link that are produced meanwhile."""
_LEAST_BYTES = 1 << 16
_BEYOND = 1 << 16  # offsets; more than a batch usually has
_EMPTY_REPLIES = 5
_PAUSE_SECONDS = 0.2


class Pace:
    """Limits the rate of reading. ``bytes_per_second`` 0: no limit."""

    def __init__(
        self,
        bytes_per_second: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self.sleep = sleep
        self._free_at = clock()
        self._quickest = 0.0

    @property
    def bytes_at_once(self) -> int:
        """How many bytes one request asks for. Of a cluster so far away that a reply takes longer than
        `_REQUEST_SECONDS`, as many as keep to the rate nevertheless."""
        seconds = max(_REQUEST_SECONDS, self._quickest)
        return min(READ_BYTES, max(_LEAST_BYTES, int(self._rate * seconds))) if self._rate else READ_BYTES

    @contextlib.contextmanager
    def spending(self) -> Iterator[Callable[[int], None]]:
        """Wait at the end until the bytes of one reply fit into the rate. They are given to the yielded function."""
        began, sizes = self._clock(), list[int]()
        yield sizes.append
        now = self._clock()
        if self._rate:
            self._quickest = min(self._quickest or now - began, now - began)
            self._free_at = max(self._free_at, began) + sum(sizes) / self._rate
            if self._free_at > now:
                self.sleep(self._free_at - now)


class _Reply(NamedTuple):
    """Part of a log. ``next``: the offset to read next; None: there is no more."""

    items: list[Item]
    next: int | None


@dataclass
class LogSide:
    """One cluster's logs.

    Attributes:
        skipped_producers: producer IDs whose batches the link does not copy.
        skipped: records in such batches that were read.
        compacted: there may be offsets without a record.
        readable: the end of the partition that was read last.
        reached: the end of the range that was read last; if the log ends sooner, the offset before which it was read.
    """

    logs: PartitionLogs
    pace: Pace
    skipped_producers: Collection[int] = ()
    skipped: int = 0
    compacted: bool = False
    readable: int = 0
    reached: int = 0
    _first: int = 0

    def items(self, place: TopicPartition, first: int, end: int) -> Generator[Item, None, None]:
        """Yield the batches that hold offsets in [``first``, ``end``), and the holes between them. Batches of markers,
        aborted transactions and skipped producers have 0 records. The next part is read while one is used.

        Raises:
            ClusterUnavailable, NotAuthorized
        """
        self.reached = end
        if first >= end:
            return
        self.readable = 0
        self._first = first
        with ThreadPoolExecutor(1) as pool:
            upcoming = pool.submit(self._read, place, first, end)
            while True:
                found = upcoming.result()
                if found.next is None:
                    yield from found.items
                    return
                upcoming = pool.submit(self._read, place, found.next, end)
                yield from found.items

    def _read(self, place: TopicPartition, at: int, end: int) -> _Reply:
        for _ in range(_EMPTY_REPLIES):
            try:
                part = self._part(place, at)
            except CorruptBatch:
                break
            if part.outside:
                following, is_end, _ = part.outside
                if is_end:
                    return self._ended(at)
                self._first = following  # records may have been deleted up to one inside a batch
                return _Reply([Hole(at, min(following, end), "deleted")], following if following < end else None)
            if at >= part.readable:
                return self._ended(at)
            if len(part.records):
                return self._reply(place, part, at, end)
            self.pace.sleep(_PAUSE_SECONDS)
        return self._from_before(place, at, end) or self._after_hole(place, at, end)

    def _ended(self, at: int) -> _Reply:
        self.reached = at
        return _Reply([], None)

    def _part(self, place: TopicPartition, at: int) -> RawPart:
        with self.pace.spending() as spend:
            part = self.logs.read_raw(place, at, self.pace.bytes_at_once, committed=True)
            spend(len(part.records))
        self.readable = max(self.readable, part.readable)
        return part

    def _reply(self, place: TopicPartition, part: RawPart, at: int, end: int) -> _Reply:
        found = recognize(part.records, at, part.readable, inside=at == self._first)
        gap = bool(found.items) and _first(found.items[0]) > at > part.start
        if not found.items or isinstance(found.items[0], Hole) or (gap and not self.compacted):
            return self._from_before(place, at, end) or self._made(found, part, place, at, end)
        return self._made(found, part, place, at, end)

    def _made(self, found: Recognized, part: RawPart, place: TopicPartition, at: int, end: int) -> _Reply:
        """Return the recognized items of the range; if bytes were not recognized, also the items after these."""
        items = [
            self._counted(item) if isinstance(item, Batch) else Hole(max(item.first, at), min(item.end, end), item.why)
            for item in _committed(found.items, part)
            if _end(item) > at and _first(item) < end
        ]
        if found.next >= end:
            return _Reply(items, None)
        if found.next > at and not found.doubtful:
            return _Reply(items, found.next)
        rest = self._after_hole(place, max(at, found.next), end)
        return _Reply([*items, *rest.items], rest.next)

    def _from_before(self, place: TopicPartition, at: int, end: int) -> _Reply | None:
        """Read from an earlier offset, since a broker may not find this one if a header is damaged. It sends the bytes
        that follow, damaged or not. None: the earlier ones are no help."""
        step = 1
        while step <= at:
            with contextlib.suppress(CorruptBatch):
                part = self._part(place, at - step)
                if part.outside:
                    return None
                if len(part.records):
                    found = recognize(part.records, at - step, part.readable, inside=True, suspect=at)
                    if found.items and isinstance(found.items[0], Batch) and _first(found.items[0]) <= at - step:
                        return self._made(found, part, place, at, end) if found.next > at else None
            step *= 2
        return None

    def _counted(self, batch: Batch) -> Batch:
        if batch.records and batch.magic == 2 and batch.producer_id in self.skipped_producers:
            self.skipped += batch.records
            return batch._replace(records=0)
        return batch

    def _after_hole(self, place: TopicPartition, at: int, end: int) -> _Reply:
        """Search for the next batch that can be read. A broker finds a batch after a damaged header only by its last
        offset or a later one, so the search goes beyond the end."""
        last = min(end + _BEYOND, self.readable or end + _BEYOND) - 1
        failed, step = at, 1
        good = self._first_batch(place, min(at + step, last))
        while good is None and at + step < last:
            failed, step = at + step, 2 * step
            good = self._first_batch(place, min(at + step, last))
        found = min(at + step, last)
        while good is not None and found - failed > 1:
            middle = (found + failed) // 2
            earlier = self._first_batch(place, middle)
            if earlier is None:
                failed = middle
            else:
                found, good = middle, earlier
        resumed = end if good is None else good.base_offset
        items: list[Item] = [Hole(at, min(resumed, end), "damaged")] if resumed > at else []
        if good is None or resumed >= end:
            return _Reply(items, None)
        return _Reply([*items, self._counted(good)], good.next_offset if good.next_offset < end else None)

    def _first_batch(self, place: TopicPartition, offset: int) -> Batch | None:
        """Return the batch that holds the offset, or the next one, if it can be read."""
        with contextlib.suppress(CorruptBatch):
            part = self._part(place, offset)
            found = recognize(part.records, offset, part.readable, inside=True)
            first = next(_committed(found.items[:1], part), None)
            if isinstance(first, Batch) and first.next_offset > offset:
                check(first)
                return first
        return None


def _first(item: Item) -> int:
    return item.base_offset if isinstance(item, Batch) else item.first


def _end(item: Item) -> int:
    return item.next_offset if isinstance(item, Batch) else item.end


def _committed(found: Sequence[Item], part: RawPart) -> Iterator[Item]:
    """Yield the items; markers and aborted batches have 0 records. A damaged batch may have the attributes of a marker."""
    batches = without_aborted((item for item in found if isinstance(item, Batch)), part.aborted)
    for item in found:
        batch = next(batches) if isinstance(item, Batch) else item
        if (
            isinstance(batch, Batch)
            and batch.attributes & CONTROL
            and batch.magic == 2
            and len(batch.view) > _MARKER_BYTES
        ):
            yield parse(batch.view)
        else:
            yield batch
