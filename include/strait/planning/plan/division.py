"""Divides a link's topics and waiting entries into those of its task groups. Pure."""

from collections.abc import Collection, Iterable, Mapping

from strait.config.links import Link
from strait.model import TopicPartition
from strait.planning.assignment.slots import Assignment, Place, group_of
from strait.planning.plan.draft import in_order
from strait.planning.topics.lost_mappings import Begun
from strait.planning.topics.pairs import Pair
from strait.state.schema import PlannedTopic, TopicPolicy, Waiting


def topics_of_groups(
    link: Link,
    pairs: Iterable[Pair],
    begun: Begun,
    policies: Mapping[str, TopicPolicy],
    dealt: Assignment,
    started: Collection[TopicPartition],
) -> dict[str, tuple[PlannedTopic, ...]]:
    """Return task group -> its topics.

    A topic whose partitions are replicated by several task groups is in the plan of each. If some of its partitions are
    not replicated, it is also in the plan of the topic's task group, which contains the reason.
    """
    places: dict[str, list[tuple[int, Place]]] = {}
    for (topic, number), place in dealt.places.items():
        places.setdefault(topic, []).append((number, place))
    planned: dict[str, list[PlannedTopic]] = {}
    for pair in pairs:
        topic, count = pair.source.topic, pair.source.partitions
        without = begun.without_runs(topic, count, started)
        unbegun = tuple(number for number, lost in without.items() if not lost)
        slots: dict[str, list[int | None]] = {}
        for number, place in places.get(topic, ()):
            slots.setdefault(place.group, [None] * count)[number] = place.slot
        if len(places.get(topic, ())) < count:
            slots.setdefault(group_of(link, topic), [None] * count)
        for group, of_group in slots.items():
            planned.setdefault(group, []).append(
                PlannedTopic(
                    source=topic,
                    destination=pair.destination.topic,
                    source_id=pair.source.topic_id,
                    destination_id=pair.destination.topic_id,
                    slots=tuple(of_group),
                    policy=policies[topic],
                    unbegun=unbegun,
                    added=tuple(number for number in unbegun if begun.joins(TopicPartition(topic, number))),
                    lost=begun.lost_runs(topic, [number for number, lost in without.items() if lost]),
                )
            )
    return {group: tuple(topics) for group, topics in planned.items()}


def waiting_of_groups(link: Link, waiting: Iterable[Waiting]) -> dict[str, tuple[Waiting, ...]]:
    """Return task group -> the waiting entries of its topics."""
    found: dict[str, list[Waiting]] = {}
    for item in waiting:
        found.setdefault(group_of(link, item.topic), []).append(item)
    return {group: in_order(items) for group, items in found.items()}
