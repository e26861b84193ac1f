"""MirrorMaker 2's checkpoints and offset syncs, derived from the exact map: clients that translate offsets with its
`RemoteClusterUtils` get the offsets that `strait groups` shows."""

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from strait.config.route_names import is_route
from strait.model import TopicPartition
from strait.planning.consumer_groups import SHARE, GroupOffset, GroupStatus, OffsetState
from strait.state.compacted_topic import CompactedTopic
from strait.state.heartbeats import encode_text
from strait.state.link_handle import LinkHandle
from strait.state.translation import Fit

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


Pairs = Mapping[TopicPartition, tuple[int, int]]
"""Source partition -> source offset and destination offset of one of its records."""


class Checkpoints:
    """For one link; records that its topics already hold are not written again. Raises as `CompactedTopic`."""

    def __init__(self, link: LinkHandle, checkpoints_topic: str, offset_syncs_topic: str) -> None:
        self.topics = checkpoints_topic, offset_syncs_topic
        self._checkpoints = CompactedTopic(*link.destination, checkpoints_topic)
        self._offset_syncs = CompactedTopic(*link.destination, offset_syncs_topic)
        self._written: dict[str, tuple[GroupOffset, ...]] = {}

    def write(self, found: Sequence[GroupStatus], pairs: Pairs) -> int:
        """Write all checkpoints and syncs that are new for these groups and partitions; return the number of
        records."""
        if self._checkpoints.read_on():
            self._written.clear()
        self._offset_syncs.read_on()
        changed = [status for status in found if self._written.get(status.group) != status.offsets]
        checkpoints = [item for status in changed for item in checkpoints_of(status)]
        # An offset sync names one destination topic for a partition of the source, and routes have several.
        syncs = [OffsetSync(place, *pair) for place, pair in pairs.items() if not is_route(place.topic)]
        written = self._offset_syncs.write({item.key(): item.value() for item in syncs})
        written += self._checkpoints.write({item.key(): item.value() for item in checkpoints})
        self._written = {status.group: status.offsets for status in found}
        return written


def checkpoints_of(status: GroupStatus) -> list[Checkpoint]:
    """Return checkpoints of a group's offsets that translate exactly, regardless of the group's activity on the
    destination. A share group has none: no client could continue with an offset of it."""
    return [
        Checkpoint(status.group, item.target, item.offset, item.to_offset)
        for item in (status.offsets if status.source.kind != SHARE else ())
        if item.to_offset is not None and item.fit == Fit.EXACT and item.state is not OffsetState.HELD_SHARED
    ]
