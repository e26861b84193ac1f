"""The first offset segment of every partition that needs one. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from strait.model import TopicPartition
from strait.planning.topics.identity import New
from strait.planning.topics.pairs import Pair
from strait.planning.topics.start_offsets import StartOffsets
from strait.reasons import Reason
from strait.state.schema import OffsetMapping, TopicPolicy, Waiting


class StartRequest(NamedTuple):
    """The destination partition of a partition that needs a first segment, its start offset, and the change that ended
    an earlier replication."""

    target: TopicPartition
    fresh: New


@dataclass(frozen=True, slots=True)
class NewPartition:
    """The start of a partition's replication. IDs pin the two topics; ``transform`` is the digest of the transformation
    of its records."""

    destination: str
    source_id: str
    destination_id: str
    source_base: int
    destination_base: int
    transform: str = ""

    def first_run(self, partition: TopicPartition, now_ms: int) -> OffsetMapping:
        """Return the first segment. Nothing has been written yet: sequence number 0 is the record at
        ``source_base``."""
        return OffsetMapping(
            topic=partition.topic,
            partition=partition.partition,
            destination=self.destination,
            source_id=self.source_id,
            destination_id=self.destination_id,
            source_base=self.source_base,
            destination_base=self.destination_base,
            sequence_base=0,
            sequence_end=0,
            checkpoint_at_ms=now_ms,
            transform=self.transform,
        )


def begin(
    wanted: Mapping[TopicPartition, StartRequest],
    destinations: Iterable[Pair],
    starts: StartOffsets,
    policies: Mapping[str, TopicPolicy],
) -> tuple[dict[TopicPartition, NewPartition], list[Waiting]]:
    """Return the partitions that can start, and the entries of those that wait because their start offset is unknown.

    Args:
        starts: has a result or a failure for both sides of every wanted partition.
        policies: source topic -> its policy.
    """
    pairs = {pair.source.topic: pair for pair in destinations}
    new: dict[TopicPartition, NewPartition] = {}
    waiting = []
    for partition, (target, _) in wanted.items():
        failure = _failure(partition, target, starts)
        if failure is not None:
            waiting.append(failure)
            continue
        pair = pairs[partition.topic]
        new[partition] = NewPartition(
            target.topic,
            pair.source.topic_id,
            pair.destination.topic_id,
            starts.source[partition],
            starts.destination[target],
            policies[partition.topic].transform_digest,
        )
    return new, waiting


def _failure(partition: TopicPartition, target: TopicPartition, starts: StartOffsets) -> Waiting | None:
    if partition in starts.source_failures:
        reason, detail = Reason.SOURCE_LEADERLESS, starts.source_failures[partition]
    elif partition in starts.out_of_range:
        reason, detail = Reason.START_OUT_OF_RANGE, starts.out_of_range[partition]
    elif target in starts.destination_failures:
        reason, detail = Reason.DESTINATION_LEADERLESS, starts.destination_failures[target]
    else:
        return None
    return Waiting(topic=partition.topic, partitions=(partition.partition,), reason=reason, detail=detail)
