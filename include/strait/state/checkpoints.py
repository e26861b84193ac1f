"""MirrorMaker 2's checkpoints and offset syncs: records with which its clients translate offsets. Pure.

The bytes are those of KIP-382. A checkpoint has committed offsets, those of the next record; an offset sync has the
offsets of one record. `RemoteClusterUtils` reads every checkpoint of the topic, uses the last one of each key, and
fails on a tombstone, so none is ever written.
"""

import struct
from typing import NamedTuple

from strait.model import TopicPartition
from strait.state.heartbeats import encode_text

_VERSION = 0
_PARTITION = struct.Struct(">i")
_OFFSETS = struct.Struct(">qq")
_CHECKPOINT = struct.Struct(">hqq")


class Checkpoint(NamedTuple):
    """``place``: the destination partition. ``upstream``, ``offset``: the group's committed offset on the source, and
    its translation."""

    group: str
    place: TopicPartition
    upstream: int
    offset: int

    def key(self) -> bytes:
        return encode_text(self.group) + _place(self.place)

    def value(self) -> bytes:
        """Return the value without the consumer's metadata, as MirrorMaker 2 writes it."""
        return _CHECKPOINT.pack(_VERSION, self.upstream, self.offset) + encode_text("")


class OffsetSync(NamedTuple):
    """``place``: the source partition. ``upstream``, ``offset``: one record's offsets on source and destination."""

    place: TopicPartition
    upstream: int
    offset: int

    def key(self) -> bytes:
        return _place(self.place)

    def value(self) -> bytes:
        return _OFFSETS.pack(self.upstream, self.offset)


def _place(place: TopicPartition) -> bytes:
    return encode_text(place.topic) + _PARTITION.pack(place.partition)
