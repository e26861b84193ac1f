"""The map's present entries for one partition."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from strait.engine.partition.partition import Partition
from strait.engine.recovery.unresolved import Unresolved
from strait.reasons import Reason
from strait.state.adoption import adopted
from strait.state.schema import OffsetMapping


class Map(Protocol):
    """The map as its owner reads it. ``map_end``: the first offset of its topic that was not read yet."""

    @property
    def runs(self) -> Mapping[tuple[str, int], Sequence[OffsetMapping]]: ...

    @property
    def map_end(self) -> int: ...


class KnownRuns:
    """The map entries of partitions, by sequence_base."""

    def __init__(self, known: Map) -> None:
        self._known = known

    def of(self, partition: Partition) -> Sequence[OffsetMapping]:
        """Return the entries for exactly these two topics. If there are none and the policy lets a recreated source
        topic be copied, return those of its predecessor, which still record the destination's position."""
        source_id, destination_id = partition.ids
        into = [
            run
            for run in adopted(
                self._known.runs.get((partition.topic, partition.number), ()),
                partition.destination,
                source_id,
                destination_id,
            )
            if run.destination_id == destination_id and run.destination == partition.destination
        ]
        own = [run for run in into if run.source_id == source_id]
        return own or (into if partition.policy.on_loss != "halt" else ())

    def needed(self, partition: Partition) -> Sequence[OffsetMapping]:
        """Return the same entries. Raises Unresolved if there are none."""
        runs = self.of(partition)
        if not runs:
            raise Unresolved.until_decided(Reason.MAP_RUN_MISSING, "the offset map has no entry for these two topics")
        return runs
