"""Partitions that have been copied and of which the map has no run any more. Pure.

A partition's first run is published together with the plan that gives the partition to a slot, and plans remember which
partitions had none yet. So any other one without a run in the map is no new one: the map has lost it. A new first run
would say that nothing was copied yet, and records would be copied a second time or never.

One thing makes a new first run safe: the destination topic that held the records was deleted, and another one was
created under its name.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from strait.model import TopicPartition
from strait.planning.topics.identity import Change, Halted, New, Unchanged, naming_changed
from strait.planning.topics.pairs import Pair
from strait.reasons import Reason
from strait.state.schema import LeftTopic, LostRuns, OffsetMapping, Plan, PlannedTopic, TopicPolicy

Runs = Mapping[tuple[str, int], tuple[OffsetMapping, ...]]
_HAD_RUNS = {Reason.PAUSED, Reason.SOURCE_RECREATED, Reason.DESTINATION_RECREATED, Reason.NAMING_CHANGED}


class Target(NamedTuple):
    """A destination topic, by name and id."""

    name: str
    topic_id: str


class Copied(NamedTuple):
    """What is remembered of a topic: where it was copied to, its first ``partitions`` of them but for those that never
    began, and where lost partitions had been copied to."""

    target: Target
    partitions: int
    unbegun: frozenset[int]
    lost: Mapping[int, Target]

    @property
    def anything(self) -> bool:
        return len(self.unbegun & frozenset(range(self.partitions))) < self.partitions


@dataclass(frozen=True, slots=True)
class Begun:
    """What the plans in force and the map tell of topics that were copied.

    Attributes:
        topics: source topics of which something was.
    """

    copied: Mapping[str, Copied]
    runs: Runs
    topics: frozenset[str]

    @classmethod
    def of(cls, previous: Collection[Plan], runs: Runs) -> "Begun":
        copied = {topic.source: _copied(topic, topic.partitions) for plan in previous for topic in plan.left}
        copied |= _of_older(previous, runs)
        planned = (topic for plan in previous for topic in plan.topics if topic.unbegun is not None)
        copied |= {topic.source: _copied(topic, len(topic.slots)) for topic in planned}
        in_map = {topic for topic, _ in runs}
        return cls(copied, runs, frozenset(in_map | {name for name, topic in copied.items() if topic.anything}))

    def lost(self, partition: TopicPartition) -> bool:
        """Whether it was copied, and the map has no run of it."""
        topic = self.copied.get(partition.topic)
        return (
            topic is not None
            and partition not in self.runs
            and partition.partition < topic.partitions
            and partition.partition not in topic.unbegun
        )

    def without_runs(self, topic: str, count: int, started: Container[TopicPartition]) -> dict[int, bool]:
        """Which of a topic's partitions have no run and get none now; and whether the map has lost it."""
        partitions = (TopicPartition(topic, number) for number in range(count))
        left = (one for one in partitions if one not in self.runs and one not in started)
        return {partition.partition: self.lost(partition) for partition in left}

    def target(self, partition: TopicPartition) -> Target:
        """Where a lost partition was copied to."""
        topic = self.copied[partition.topic]
        return topic.lost.get(partition.partition, topic.target)

    def lost_runs(self, topic: str, numbers: Iterable[int]) -> tuple[LostRuns, ...]:
        """As the plans remember them."""
        together: dict[Target, list[int]] = {}
        for number in numbers:
            together.setdefault(self.target(TopicPartition(topic, number)), []).append(number)
        return tuple(
            LostRuns(partitions=tuple(of_target), destination=target.name, destination_id=target.topic_id)
            for target, of_target in sorted(together.items())
        )


def judge_lost(pair: Pair, number: int, begun: Begun, policy: TopicPolicy) -> New | Halted | Unchanged:
    """What follows for a partition whose runs are lost. Unchanged: its slot goes by what it finds, or waits with
    `map_run_missing`."""
    now, before = pair.destination, begun.target(TopicPartition(pair.source.topic, number))
    if before.name != now.topic:
        return Halted(naming_changed(before.name, now.topic, 0))
    if not before.topic_id or not now.topic_id or now.topic_id == before.topic_id:
        return Unchanged()
    detail = (
        f"topic {now.topic} was deleted and created again on the destination: the link copied into ID {before.topic_id}, "
        f"the present one is {now.topic_id}; the offset map has no entry for what the former one held"
    )
    change = Change(Reason.DESTINATION_RECREATED, detail, "destination", (0, 0))
    return New("earliest", change) if policy.on_loss == "restart" else Halted(change)


def left_after(begun: Begun, planned: Collection[str], forgotten: Collection[str]) -> tuple[LeftTopic, ...]:
    """What the next plans remember of topics that they do not have.

    Args:
        planned: source topics that they have.
        forgotten: those that are gone on both sides.
    """
    names = sorted(begun.topics - set(planned) - set(forgotten))
    of_map = by_topic(begun.runs, {name for name in names if name not in begun.copied})
    found = []
    for name in names:
        topic = begun.copied.get(name) or _by_map(of_map[name])
        lost = [number for number in sorted(topic.lost) if (name, number) not in begun.runs]
        found.append(
            LeftTopic(
                source=name,
                destination=topic.target.name,
                destination_id=topic.target.topic_id,
                partitions=topic.partitions,
                unbegun=tuple(sorted(topic.unbegun)),
                lost=begun.lost_runs(name, lost) if lost else (),
            )
        )
    return tuple(found)


def _copied(topic: PlannedTopic | LeftTopic, count: int) -> Copied:
    lost = {number: Target(one.destination, one.destination_id) for one in topic.lost for number in one.partitions}
    target = Target(topic.destination, topic.destination_id)
    return Copied(target, count, frozenset(topic.unbegun or ()), lost)


def by_topic(runs: Runs, topics: Collection[str]) -> dict[str, list[OffsetMapping]]:
    """The runs of these topics; those without any are left out."""
    found: dict[str, list[OffsetMapping]] = {}
    for place in runs if topics else ():  # not their values: most of them are never looked at
        if place[0] in topics:
            found.setdefault(place[0], []).extend(runs[place])
    return {topic: of_topic for topic, of_topic in found.items() if of_topic}


def _by_map(runs: Sequence[OffsetMapping]) -> Copied:
    newest = max(runs, key=lambda run: (run.checkpoint_at_ms, run.sequence_base))
    begun = {run.partition for run in runs}
    count = max(begun) + 1
    return Copied(Target(newest.destination, newest.destination_id), count, frozenset(range(count)) - begun, {})


def _of_older(previous: Iterable[Plan], runs: Runs) -> dict[str, Copied]:
    """By plans of versions that do not say what has begun: what they give to a slot has, and what somebody has paused.
    If the map has lost any of that, those of other partitions may be lost as well."""
    plans = [plan for plan in previous if any(topic.unbegun is None for topic in plan.topics)]
    topics = [topic for plan in plans for topic in plan.topics if topic.unbegun is None]
    given = {(topic.source, n) for topic in topics for n, slot in enumerate(topic.slots) if slot is not None}
    given |= {
        (item.topic, n) for plan in plans for item in plan.waiting if item.reason in _HAD_RUNS for n in item.partitions
    }
    complete = all(place in runs for place in given)
    found = {}
    for topic in topics:
        numbers = range(len(topic.slots)) if complete else ()
        unbegun = frozenset(n for n in numbers if (topic.source, n) not in given and (topic.source, n) not in runs)
        found[topic.source] = Copied(Target(topic.destination, topic.destination_id), len(topic.slots), unbegun, {})
    return found
