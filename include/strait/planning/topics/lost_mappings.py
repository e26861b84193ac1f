"""Partitions that have been copied and of which the map has no run any more. Pure.

A partition's first run is published together with the plan that gives the partition to a slot. So a partition that a
plan gives to a slot, without a run in the map, is no new one: the map has lost it. A new first run would say that
nothing was copied yet, and records would be copied a second time or never.
"""

from collections.abc import Container, Iterable

from strait.model import TopicPartition
from strait.state.schema import Plan


def lost_runs(previous: Iterable[Plan], runs: Container[object]) -> frozenset[TopicPartition]:
    """The partitions whose runs the map has lost.

    If it has lost any, those of other partitions of the plans may be lost as well: nothing else tells whether one that
    waits or is paused has been copied before.
    """
    topics = [topic for plan in previous for topic in plan.topics]
    given = ((topic.source, number) for topic in topics for number, slot in enumerate(topic.slots) if slot is not None)
    if all(partition in runs for partition in given):
        return frozenset()
    listed = (TopicPartition(topic.source, number) for topic in topics for number in range(len(topic.slots)))
    return frozenset(partition for partition in listed if partition not in runs)
