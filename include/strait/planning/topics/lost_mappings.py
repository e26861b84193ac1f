"""Partitions that have been copied and of which the map has no run any more. Pure.

A partition's first run is published together with the plan that gives the partition to a slot. So a partition that a
plan gives to a slot, or halts because a topic of it was recreated or renamed, is no new one if the map has no run of
it: the map has lost it. A new first run would say that nothing was copied yet, and records would be copied a second
time or never.

One thing makes a new first run safe: the destination topic that held the records was deleted, and another one was
created under its name.
"""

from collections.abc import Collection, Container, Iterable

from strait.model import TopicPartition
from strait.planning.topics.identity import Change, Halted, New, Unchanged
from strait.planning.topics.pairs import Pair
from strait.reasons import Reason
from strait.state.schema import Plan, TopicPolicy

_HAD_RUNS = {Reason.SOURCE_RECREATED, Reason.DESTINATION_RECREATED, Reason.NAMING_CHANGED}


def lost_runs(previous: Collection[Plan], runs: Container[object]) -> frozenset[TopicPartition]:
    """The partitions whose runs the map has lost.

    If it has lost any, those of other partitions of the plans may be lost as well: nothing else tells whether one that
    waits or is paused has been copied before.
    """
    topics = [topic for plan in previous for topic in plan.topics]
    given = [(topic.source, number) for topic in topics for number, slot in enumerate(topic.slots) if slot is not None]
    given += [
        (item.topic, number)
        for plan in previous
        for item in plan.waiting
        if item.reason in _HAD_RUNS
        for number in item.partitions
    ]
    if all(partition in runs for partition in given):
        return frozenset()
    listed = (TopicPartition(topic.source, number) for topic in topics for number in range(len(topic.slots)))
    return frozenset(partition for partition in listed if partition not in runs)


def judge_lost(pair: Pair, number: int, previous: Iterable[Plan], policy: TopicPolicy) -> Unchanged | New | Halted:
    """What follows for a partition whose runs are lost. Unchanged: its slot goes by what it finds, or waits with
    `map_run_missing`.

    Args:
        previous: the plans in force. They remember the destination topic that was written to: by its id, and once they
            have seen another one by what waits for it.
    """
    plans = tuple(previous)
    topic, now = pair.source.topic, pair.destination
    known = [planned for plan in plans for planned in plan.topics if planned.source == topic]
    if any(planned.destination != now.topic for planned in known):
        return Unchanged()
    other = any(planned.destination_id and planned.destination_id != now.topic_id for planned in known)
    noted = any(
        item.topic == topic and number in item.partitions and item.reason == Reason.DESTINATION_RECREATED
        for plan in plans
        for item in plan.waiting
    )
    if not now.topic_id or not (other or noted):
        return Unchanged()
    detail = f"{now.topic} was recreated, and the offset map has no entry for what it held"
    change = Change(Reason.DESTINATION_RECREATED, detail, "destination", (0, 0))
    return New("earliest", change) if policy.on_loss == "restart" else Halted(change)
