"""How much of the link's bandwidth each slot may use. Pure.

A budget is the whole link's, so its shares are dealt out over the slots of all task groups: by what their partitions
have to copy, once that is measured, and by their number before.
"""

from collections.abc import Iterator, Mapping, Sequence

from strait.config.links import Topics
from strait.config.rules import rule_of
from strait.model import TopicPartition
from strait.planning.assignment.slots import Place
from strait.planning.assignment.spread import Loads, weights_of
from strait.state.schema import Budget, Plan, PlannedTopic

ALIKE = 0.25
"""Shares that differ by no more than this part of themselves stay as they were: loads waver, and each plan has its
price."""

Shares = Mapping[str, tuple[float, ...]]


def budgets_of(
    topics: Topics,
    places: Mapping[TopicPartition, Place],
    slots: Mapping[str, int],
    loads: Loads,
    previous: Mapping[str, Plan],
) -> dict[str, tuple[Budget, ...]]:
    """Task group -> the link's budget, then each class's by name, with what each slot of the group may use of it.

    Args:
        places: where each partition is copied.
        slots: task group -> how many slots it has.
        loads: bytes a second of the partitions that were measured.
    """
    found: dict[str, list[Budget]] = {group: [] for group in slots}
    limits = list(_limits(topics))
    weights = weights_of(places, loads) if limits else {}
    for name, limit in limits:
        shares = _shares(topics, places, slots, weights, name)
        before = _before(previous, slots, name, limit)
        for group, of_group in (before if _alike(before, shares) else shares).items():
            found[group].append(Budget(topic_class=name, bytes_per_second=limit, slot_shares=of_group))
    return {group: tuple(budgets) for group, budgets in found.items()}


def dealt_anew(budget: Budget, topics: Sequence[PlannedTopic], slots: int) -> Budget:
    """What one group may use of a budget, dealt out by the number of partitions that each of its slots copies now."""
    group = sum(budget.slot_shares) or 1.0
    counts = [0] * slots
    for topic in topics:
        if budget.topic_class in ("", topic.policy.topic_class):
            for slot in topic.slots:
                if slot is not None:
                    counts[slot] += 1
    total = sum(counts)
    shares = tuple(group * (count / total if total else 1 / slots) for count in counts)
    return budget.model_copy(update={"slot_shares": shares})


def _limits(topics: Topics) -> Iterator[tuple[str, int]]:
    if topics.budget.bytes_per_second is not None:
        yield "", topics.budget.bytes_per_second
    yield from sorted(topics.budget.classes.items())


def _shares(
    topics: Topics,
    places: Mapping[TopicPartition, Place],
    slots: Mapping[str, int],
    weights: Mapping[TopicPartition, int],
    topic_class: str,
) -> Shares:
    """Evenly where nothing is copied, so that a share is there for the first one to come."""
    counted = {
        topic: topic_class in ("", rule_of(topics, topic).topic_class)
        for topic in dict.fromkeys(partition.topic for partition in places)
    }
    sums = {group: [0] * count for group, count in slots.items()}
    for partition, place in places.items():
        if counted[partition.topic]:
            sums[place.group][place.slot] += weights[partition]
    total = sum(map(sum, sums.values()))
    every = sum(slots.values())
    return {group: tuple(one / total if total else 1 / every for one in of_slots) for group, of_slots in sums.items()}


def _before(previous: Mapping[str, Plan], slots: Mapping[str, int], topic_class: str, limit: int) -> Shares:
    return {
        group: budget.slot_shares
        for group, plan in previous.items()
        for budget in plan.budgets
        if group in slots and (budget.topic_class, budget.bytes_per_second) == (topic_class, limit)
    }


def _alike(before: Shares, now: Shares) -> bool:
    if before.keys() != now.keys() or any(len(before[group]) != len(now[group]) for group in now):
        return False
    pairs = [pair for group in now for pair in zip(before[group], now[group], strict=True)]
    # A slot without a share is one that copies nothing of it; one that copies something must have a share.
    return all((one > 0) == (other > 0) and abs(one - other) <= ALIKE * max(one, other) for one, other in pairs)
