"""Partitions that have been copied and of which the map has no run any more. Pure.

A partition's first run is published together with the plan that gives the partition to a slot, and plans remember which
partitions had none yet. So any other one without a run in the map is no new one: the map has lost it. A new first run
would say that nothing was copied yet, and records would be copied a second time or never.

One thing makes a new first run safe: the destination topic that held the records was deleted, and another one was
created under its name.
"""

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass

from strait.model import TopicPartition
from strait.planning.topics.identity import Change, Halted, New, Unchanged
from strait.planning.topics.pairs import Pair
from strait.reasons import Reason
from strait.state.schema import LeftTopic, OffsetMapping, Plan, PlannedTopic, TopicPolicy

Runs = Mapping[tuple[str, int], tuple[OffsetMapping, ...]]


@dataclass(frozen=True, slots=True)
class Begun:
    """What the plans in force remember of topics that were copied.

    Attributes:
        planned: source topic -> as the plans have it; ``left``: as they have it of topics that are not planned.
        older: lost partitions by plans that do not say what has begun.
        in_map: source topics that the map has a run of.
    """

    planned: Mapping[str, PlannedTopic]
    left: Mapping[str, LeftTopic]
    older: frozenset[TopicPartition]
    runs: Runs
    in_map: frozenset[str]

    @classmethod
    def of(cls, previous: Collection[Plan], runs: Runs) -> "Begun":
        planned: dict[str, PlannedTopic] = {}
        for topic in (topic for plan in previous for topic in plan.topics):
            if topic.unbegun is not None:
                planned[topic.source] = topic  # every group's plan says the same of it
        left = {topic.source: topic for plan in previous for topic in plan.left}
        return cls(planned, left, _of_older(previous, runs), runs, frozenset(topic for topic, _ in runs))

    @property
    def topics(self) -> frozenset[str]:
        """All that were ever copied, as far as anything tells."""
        return self.in_map | self.planned.keys() | self.left.keys()

    def lost(self, partition: TopicPartition) -> bool:
        """Whether it was copied, and the map has no run of it."""
        if partition in self.runs:
            return False
        topic = self.planned.get(partition.topic)
        if topic is not None:
            return partition.partition < len(topic.slots) and partition.partition not in (topic.unbegun or ())
        left = partition.topic in self.left and partition.topic not in self.in_map
        return left or partition in self.older

    def without_runs(self, topic: str, count: int, started: Container[TopicPartition]) -> dict[int, bool]:
        """Which of a topic's partitions have no run and get none now; and whether the map has lost it."""
        partitions = (TopicPartition(topic, number) for number in range(count))
        left = (one for one in partitions if one not in self.runs and one not in started)
        return {partition.partition: self.lost(partition) for partition in left}

    def destination(self, topic: str) -> tuple[str, str]:
        """Name and id of the destination topic that was written to; "" where that is not known."""
        if topic in self.planned:
            planned = self.planned[topic]
            return planned.destination, planned.lost_destination_id or planned.destination_id
        if topic in self.left:
            return self.left[topic].destination, self.left[topic].destination_id
        return "", ""


def judge_lost(pair: Pair, begun: Begun, policy: TopicPolicy) -> New | Halted | Unchanged:
    """What follows for a partition whose runs are lost. Unchanged: its slot goes by what it finds, or waits with
    `map_run_missing`."""
    now = pair.destination
    name, before = begun.destination(pair.source.topic)
    if name != now.topic or not before or not now.topic_id or now.topic_id == before:
        return Unchanged()
    detail = f"{name} had id {before}, the present one {now.topic_id}; the offset map has no entry for what it held"
    change = Change(Reason.DESTINATION_RECREATED, detail, "destination", (0, 0))
    return New("earliest", change) if policy.on_loss == "restart" else Halted(change)


def left_after(begun: Begun, planned: Collection[str], forgotten: Collection[str]) -> tuple[LeftTopic, ...]:
    """What the next plans remember of topics that they do not have.

    Args:
        planned: source topics that they have.
        forgotten: those that are gone on both sides.
    """
    found = []
    for topic in sorted(begun.topics - set(planned) - set(forgotten)):
        name, topic_id = begun.destination(topic)
        if not name and topic in begun.in_map:
            newest = max(_runs_of(begun.runs, topic), key=lambda run: (run.checkpoint_at_ms, run.sequence_base))
            name, topic_id = newest.destination, newest.destination_id
        if name and not _never_begun(begun.planned.get(topic)):
            found.append(LeftTopic(source=topic, destination=name, destination_id=topic_id))
    return tuple(found)


def _never_begun(topic: PlannedTopic | None) -> bool:
    return topic is not None and set(topic.unbegun or ()) >= set(range(len(topic.slots)))


def _runs_of(runs: Runs, topic: str) -> list[OffsetMapping]:
    return [run for place in runs if place[0] == topic for run in runs[place]]


def _of_older(previous: Iterable[Plan], runs: Runs) -> frozenset[TopicPartition]:
    """By plans that do not say what has begun: what they give to a slot has. If the map has lost any of that, those
    of other partitions of the plans may be lost as well."""
    topics = [topic for plan in previous for topic in plan.topics if topic.unbegun is None]
    given = ((topic.source, number) for topic in topics for number, slot in enumerate(topic.slots) if slot is not None)
    if all(partition in runs for partition in given):
        return frozenset()
    listed = (TopicPartition(topic.source, number) for topic in topics for number in range(len(topic.slots)))
    return frozenset(partition for partition in listed if partition not in runs)
