"""A broker's segment in memory, read as Kafka reads it: by an index, then header by header."""

from bisect import bisect_right
from collections.abc import Sequence
from struct import Struct

from strait.errors import CorruptBatch
from strait.model import TopicPartition
from strait.net.partition_logs import RawPart
from strait.wire.batch import Batch

_FRONT = Struct(">qi")
_LAST_DELTA = Struct(">i")
_INDEX_EVERY = 4096


class SegmentFile:
    """Its bytes may be changed. The index and the end are those of the batches as they were appended."""

    def __init__(self, batches: Sequence[Batch], *, index_every: int = _INDEX_EVERY) -> None:
        self.data = bytearray(b"".join(bytes(batch.view) for batch in batches))
        self.end = batches[-1].next_offset
        self.reads = 0
        self._index: list[tuple[int, int]] = [(-1, 0)]
        at = since = 0
        for batch in batches:
            if since > index_every:
                self._index.append((batch.next_offset - 1, at))
                since = 0
            at += len(batch.view)
            since += len(batch.view)

    def read_raw(self, _: TopicPartition, offset: int, most_bytes: int, *, committed: bool) -> RawPart:
        self.reads += 1
        if not 0 <= offset <= self.end:
            return RawPart(memoryview(b""), (), 0, self.end, (self.end, True, 0))
        found = self._position(offset)
        data = b"" if found is None else bytes(self.data[found[0] : found[0] + max(most_bytes, found[1])])
        return RawPart(memoryview(data), (), 0, self.end)

    def _position(self, offset: int) -> tuple[int, int] | None:
        """Position and size of the first batch whose last offset is not before this one."""
        at = self._index[bisect_right(self._index, (offset, 1 << 62)) - 1][1]
        while at + 17 <= len(self.data):
            base, size = _FRONT.unpack_from(self.data, at)
            if size < 14:
                raise CorruptBatch("the broker")
            if at + 12 + size > len(self.data):
                return None
            last = base
            if self.data[at + 16] < 128 and self.data[at + 16] >= 2:
                last += _LAST_DELTA.unpack_from(self.data, at + 23)[0]
            if last >= offset:
                return at, 12 + size
            at += 12 + size
        return None
