"""Deals partitions out: each to a task group, and within it to a slot. Pure.

Only what has to move moves. How many slots a group has follows from its load, within the bounds of its configuration.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from strait.config.groups import DEFAULT_GROUP
from strait.config.links import Link
from strait.config.rules import rule_of
from strait.model import TopicPartition
from strait.planning.assignment.backfill_routing import Seen, routes_of
from strait.planning.assignment.spread import assign
from strait.planning.history.load import Load, rates, slots_for
from strait.state.schema import Plan, PlannedTopic


class Place(NamedTuple):
    """Where a partition is copied."""

    group: str
    slot: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """Who copies what.

    Attributes:
        places: of every partition that is copied.
        slots: task group -> how many it has.
    """

    places: Mapping[TopicPartition, Place]
    slots: Mapping[str, int]

    @property
    def used(self) -> set[str]:
        """The task groups that copy anything."""
        return {place.group for place in self.places.values()}


def group_of(link: Link, topic: str) -> str:
    """The task group that a source topic belongs to."""
    return rule_of(link.topics, topic).group or DEFAULT_GROUP


def deal(
    link: Link,
    partitions: Collection[TopicPartition],
    previous: Mapping[str, Plan],
    loads: Mapping[TopicPartition, Load],
    histories: Mapping[TopicPartition, int],
) -> Assignment:
    """Give every partition its place.

    Args:
        previous: task group -> its plan in force.
        loads: what was reported of each partition just now.
        histories: new partition -> how many records wait for it at the source.
    """
    before = {group: slots_by_partition(plan.topics) for group, plan in previous.items()}
    groups_before = {partition: group for group, slots in before.items() for partition in slots}
    own = {topic: group_of(link, topic) for topic in {partition.topic for partition in partitions}}
    routes = routes_of(partitions, own, link.backfill, Seen(groups_before, loads, histories))
    members: dict[str, list[TopicPartition]] = {group: [] for group in link.groups}
    for partition in partitions:
        members[routes[partition]].append(partition)
    measured = rates(loads)
    places: dict[TopicPartition, Place] = {}
    slots = {}
    for group, of_group in members.items():
        slots_before = previous[group].slots if group in previous else 0
        slots[group] = slots_for(link.groups[group], of_group, measured, slots_before)
        assigned = assign(of_group, before.get(group, {}), slots[group], slots_before, measured)
        places |= {partition: Place(group, slot) for partition, slot in assigned.items()}
    return Assignment(places, slots)


def slots_by_partition(topics: Iterable[PlannedTopic]) -> dict[TopicPartition, int]:
    """The slot of every partition that is copied."""
    return {
        TopicPartition(topic.source, number): slot
        for topic in topics
        for number, slot in enumerate(topic.slots)
        if slot is not None
    }
