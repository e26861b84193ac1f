"""Assigns partitions: each to a task group, and within it to a slot. Pure.

Partitions move only if they have to. The number of slots of a task group follows from its load, within the configured
bounds.
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
    """The task group and slot that replicate a partition."""

    group: str
    slot: int


@dataclass(frozen=True, slots=True)
class Assignment:
    """Assignment of partitions to task groups and slots.

    Attributes:
        places: partition -> its place, for every replicated partition.
        slots: task group -> its number of slots.
    """

    places: Mapping[TopicPartition, Place]
    slots: Mapping[str, int]

    @property
    def used(self) -> set[str]:
        """The task groups that replicate at least one partition."""
        return {place.group for place in self.places.values()}


def group_of(link: Link, topic: str) -> str:
    """Return the task group that a source topic belongs to."""
    return rule_of(link.topics, topic).group or DEFAULT_GROUP


def deal(
    link: Link,
    partitions: Collection[TopicPartition],
    previous: Mapping[str, Plan],
    loads: Mapping[TopicPartition, Load],
    histories: Mapping[TopicPartition, int],
    *,
    takes_late: bool = True,
) -> Assignment:
    """Assign every partition to a task group and a slot.

    Args:
        previous: task group -> its current plan.
        loads: partition -> its load by the latest reports.
        histories: new partition -> its backlog on the source, in records.
        takes_late: whether partitions with a large lag move to the backfill task group.
    """
    before = {group: slots_by_partition(plan.topics) for group, plan in previous.items()}
    groups_before = {partition: group for group, slots in before.items() for partition in slots}
    own = {topic: group_of(link, topic) for topic in {partition.topic for partition in partitions}}
    routes = routes_of(partitions, own, link.backfill, Seen(groups_before, loads, histories, takes_late))
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
    """Return the slot of every partition that is assigned to one."""
    return {
        TopicPartition(topic.source, number): slot
        for topic in topics
        for number, slot in enumerate(topic.slots)
        if slot is not None
    }
