"""The offset segments of a link's map, updated record by record. Pure.

A reader of the whole map needs few of its partitions, such as a slot its own, and most records are checkpoints that
later ones supersede. So the newest value of each key is kept as bytes, and decoded when its partition is requested.
"""

from collections.abc import Callable, Iterator, Mapping

from strait.state.codec import Unreadable, decode, decode_key, encode_key
from strait.state.keys import RunKey
from strait.state.plain_runs import is_plain
from strait.state.schema import OffsetMapping

Where = tuple[str, int]

_BASE = b',"sequence_base":'
NotRead = Callable[[bytes, int, Unreadable], None]


class _Runs:
    """One partition's segments: key -> value and offset, if not decoded yet; key -> decoded segment."""

    __slots__ = ("decoded", "raw", "sorted", "where")

    def __init__(self, where: Where) -> None:
        self.where = where
        self.raw: dict[bytes, tuple[bytes, int]] = {}
        self.decoded: dict[bytes, OffsetMapping] = {}
        self.sorted: tuple[OffsetMapping, ...] | None = None


class RunsByPartition(Mapping[Where, tuple[OffsetMapping, ...]]):
    """(source topic, partition) -> its offset segments, by sequence_base.

    Args:
        not_read: called for a value that cannot be decoded, with its key and offset. The segment decoded before under
            this key stays.
    """

    def __init__(self, not_read: NotRead) -> None:
        self._not_read = not_read
        self._kept: dict[bytes, _Runs] = {}  # prefix of a partition's keys -> its segments
        self._heads: dict[Where, bytes] = {}  # partition -> prefix of its keys
        self._undecoded: dict[bytes, None] = {}  # an ordered set

    def put(self, raw_key: bytes | None, raw_value: bytes, offset: int) -> None:
        """Add one record. Raises Unreadable, and the segments stay unchanged."""
        if not is_plain(raw_value):
            decode(OffsetMapping, raw_key, raw_value)
        key = raw_key or b""
        head = key.rpartition(_BASE)[0]
        kept = self._kept.get(head) or self._found(head, raw_key)
        kept.raw[key] = raw_value, offset
        kept.sorted = None
        self._undecoded[head] = None

    def drop(self, raw_key: bytes | None) -> bool:
        """Remove one segment; return whether it existed."""
        key = raw_key or b""
        head = key.rpartition(_BASE)[0]
        kept = self._kept.get(head)
        if kept is None:
            return False
        found = kept.raw.pop(key, None), kept.decoded.pop(key, None)
        kept.sorted = None
        if not kept.raw and not kept.decoded:
            self._forget(head)
        return found != (None, None)

    def decode_all(self) -> None:
        """Decode the new values of every partition."""
        for head in tuple(self._undecoded):
            self._decode(head)

    def __getitem__(self, where: Where) -> tuple[OffsetMapping, ...]:
        head = self._heads[where]
        known = self._kept[head].sorted or self._decode(head)
        if not known:
            raise KeyError(where)
        return known

    def __iter__(self) -> Iterator[Where]:
        return iter(self._heads)

    def __len__(self) -> int:
        return len(self._heads)

    def _found(self, head: bytes, raw_key: bytes | None) -> _Runs:
        key = decode_key(RunKey, raw_key)
        if encode_key(key) != raw_key:
            raise Unreadable("the record's key is not written as keys are")
        where = key.topic, key.partition
        self._heads[where] = head
        kept = self._kept[head] = _Runs(where)
        return kept

    def _forget(self, head: bytes) -> None:
        del self._heads[self._kept.pop(head).where]
        self._undecoded.pop(head, None)

    def _decode(self, head: bytes) -> tuple[OffsetMapping, ...]:
        kept = self._kept[head]
        self._undecoded.pop(head, None)
        for key in tuple(kept.raw):
            value, offset = kept.raw.pop(key)  # one by one, as a map of a gigabyte would be in memory twice
            try:
                kept.decoded[key] = decode(OffsetMapping, key, value)
            except Unreadable as error:
                self._not_read(key, offset, error)
        if not kept.decoded:
            self._forget(head)
        kept.sorted = tuple(sorted(kept.decoded.values(), key=lambda run: run.sequence_base))
        return kept.sorted
