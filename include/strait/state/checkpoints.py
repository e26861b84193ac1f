"""MirrorMaker 2's checkpoints and offset syncs: records that tell its clients how offsets translate. Pure.

The bytes are those of KIP-382. A checkpoint holds offsets as they are committed, of the next record; an offset sync the
offsets of one record. `RemoteClusterUtils` reads every checkpoint of the topic, the last one of a key counts, and fails
at a tombstone, so none is ever written.
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
    """``place``: on the destination. ``upstream``, ``offset``: what the group has committed on the source, and its
    translation."""

    group: str
    place: TopicPartition
    upstream: int
    offset: int

    def key(self) -> bytes:
        return encode_text(self.group) + _place(self.place)

    def value(self) -> bytes:
        """Without the consumer's metadata, as MirrorMaker 2 writes it."""
        return _CHECKPOINT.pack(_VERSION, self.upstream, self.offset) + encode_text("")


class OffsetSync(NamedTuple):
    """``place``: on the source. ``upstream``, ``offset``: where one record is on the source, and on the destination."""

    place: TopicPartition
    upstream: int
    offset: int

    def key(self) -> bytes:
        return _place(self.place)

    def value(self) -> bytes:
        return _OFFSETS.pack(self.upstream, self.offset)


def _place(place: TopicPartition) -> bytes:
    return encode_text(place.topic) + _PARTITION.pack(place.partition)
