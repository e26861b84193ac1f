"""MirrorMaker 2's checkpoints and offset syncs, derived from the exact map: clients that translate offsets with its
`RemoteClusterUtils` get the offsets that `strait groups` shows."""

from collections.abc import Mapping, Sequence

from strait.model import TopicPartition
from strait.planning.consumer_groups import SHARE, GroupOffset, GroupStatus, OffsetState
from strait.state.checkpoints import Checkpoint, OffsetSync
from strait.state.compacted_topic import CompactedTopic
from strait.state.link_handle import LinkHandle
from strait.state.translation import Fit

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
        syncs = [OffsetSync(place, *pair) for place, pair in pairs.items()]
        written = self._offset_syncs.write({item.key(): item.value() for item in syncs})
        written += self._checkpoints.write({item.key(): item.value() for item in checkpoints})
        self._written |= {status.group: status.offsets for status in changed}
        return written


def checkpoints_of(status: GroupStatus) -> list[Checkpoint]:
    """Return checkpoints of a group's offsets that translate exactly, regardless of the group's activity on the
    destination. A share group has none: no client could continue with an offset of it."""
    return [
        Checkpoint(status.group, item.target, item.offset, item.to_offset)
        for item in (status.offsets if status.source.kind != SHARE else ())
        if item.to_offset is not None and item.fit == Fit.EXACT and item.state is not OffsetState.HELD_SHARED
    ]
