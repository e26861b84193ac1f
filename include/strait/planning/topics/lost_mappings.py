"""Partitions that have been replicated but no longer have an offset segment in the map. Pure.

A partition's first segment is published together with the plan that assigns the partition to a slot, and plans record
which partitions had none yet. So any other partition without a segment in the map is not new: the map has lost it. A
new first segment would mean that nothing was replicated yet, and records would be replicated a second time or never.

Only one thing makes a new first segment safe: the destination topic that held the records was deleted, and another one
was created under its name.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from strait.config.route_names import is_route
from strait.model import TopicPartition
from strait.planning.topics.identity import Change, Halted, New, Unchanged, naming_changed
from strait.planning.topics.pairs import Pair
from strait.reasons import Reason
from strait.state.schema import LeftTopic, LostRuns, OffsetMapping, Plan, PlannedTopic, TopicPolicy

Runs = Mapping[tuple[str, int], tuple[OffsetMapping, ...]]
_HAD_RUNS = {Reason.PAUSED, Reason.SOURCE_RECREATED, Reason.DESTINATION_RECREATED, Reason.NAMING_CHANGED}


class Target(NamedTuple):
    """A destination topic, by name and ID."""

    name: str
    topic_id: str


class Copied(NamedTuple):
    """A topic that was replicated: its destination topic; its first ``partitions`` partitions, without those that never
    started (``unbegun``); the destination topics of partitions whose segments are lost; and those of ``unbegun`` that were
    added after others had started."""

    target: Target
    partitions: int
    unbegun: frozenset[int]
    lost: Mapping[int, Target]
    added: frozenset[int] = frozenset()

    @property
    def anything(self) -> bool:
        return len(self.unbegun & frozenset(range(self.partitions))) < self.partitions


@dataclass(frozen=True)
class Begun:
    """Topics that were replicated, according to the current plans and the map.

    Attributes:
        topics: source topics of which at least one partition was replicated.
        places: source topic -> its partitions in the map.
    """

    copied: Mapping[str, Copied]
    runs: Runs
    topics: frozenset[str]
    places: Mapping[str, Sequence[tuple[str, int]]]

    @classmethod
    def of(cls, previous: Collection[Plan], runs: Runs) -> "Begun":
        copied = {topic.source: _copied(topic, topic.partitions) for plan in previous for topic in plan.left}
        copied |= _of_older(previous, runs)
        planned = (topic for plan in previous for topic in plan.topics if topic.unbegun is not None)
        copied |= {topic.source: _copied(topic, len(topic.slots)) for topic in planned}
        places: dict[str, list[tuple[str, int]]] = {}
        for place in runs:
            places.setdefault(place[0], []).append(place)
        topics = frozenset(places.keys() | {name for name, topic in copied.items() if topic.anything})
        return cls(copied, runs, topics, places)

    def sharing(self, topic: str, destination: str) -> Collection[str]:
        """Return the other topics whose records the destination topic of ``topic`` may hold, if one of the link's topics is
        or was divided: a route may get the destination of another topic, or lose its own to one."""
        if not (is_route(topic) or self._divided):
            return ()
        return self._into.get(destination, set()) - {topic}

    @cached_property
    def _divided(self) -> bool:
        return any(map(is_route, self.topics))

    @cached_property
    def _into(self) -> Mapping[str, set[str]]:
        """Destination topic -> the topics that were last replicated to it."""
        found: dict[str, set[str]] = {}
        for topic, destination in self.destinations(self.topics).items():
            found.setdefault(destination, set()).add(topic)
        return found

    def joins(self, partition: TopicPartition) -> bool:
        """Return whether the partition was added to a topic that the link already replicated, rather than waiting since
        the topic started, such as for a leader. If no plan has had the topic, as after a move from another tool, that is
        unknown, and True: no record is skipped."""
        if partition.topic not in self.topics:
            return False
        topic = self.copied.get(partition.topic)
        return topic is None or partition.partition >= topic.partitions or partition.partition in topic.added

    def lost(self, partition: TopicPartition) -> bool:
        """Return whether the partition was replicated, and the map has no segment of it."""
        topic = self.copied.get(partition.topic)
        return (
            topic is not None
            and partition not in self.runs
            and partition.partition < topic.partitions
            and partition.partition not in topic.unbegun
        )

    def without_runs(self, topic: str, count: int, started: Container[TopicPartition]) -> dict[int, bool]:
        """Return each partition of a topic that has no segment and gets none now -> whether the map has lost it."""
        partitions = (TopicPartition(topic, number) for number in range(count))
        left = (one for one in partitions if one not in self.runs and one not in started)
        return {partition.partition: self.lost(partition) for partition in left}

    def destinations(self, topics: Collection[str]) -> dict[str, str]:
        """Return the name of the destination topic to which each of these topics, all of them replicated before, was last
        replicated."""
        of_map = by_topic(self.runs, {topic for topic in topics if topic not in self.copied})
        return {
            topic: self.copied[topic].target.name if topic in self.copied else _by_map(of_map[topic]).target.name
            for topic in topics
        }

    def target(self, partition: TopicPartition) -> Target:
        """Return the topic to which a lost partition was replicated."""
        topic = self.copied[partition.topic]
        return topic.lost.get(partition.partition, topic.target)

    def lost_runs(self, topic: str, numbers: Iterable[int]) -> tuple[LostRuns, ...]:
        """Return these partitions by destination topic, as plans record them."""
        together: dict[Target, list[int]] = {}
        for number in numbers:
            together.setdefault(self.target(TopicPartition(topic, number)), []).append(number)
        return tuple(
            LostRuns(partitions=tuple(of_target), destination=target.name, destination_id=target.topic_id)
            for target, of_target in sorted(together.items())
        )


def judge_lost(pair: Pair, number: int, begun: Begun, policy: TopicPolicy) -> New | Halted | Unchanged:
    """Judge a partition whose segments are lost. Unchanged: its slot checks the map again, and waits with
    `map_run_missing` if there is no segment."""
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
    """Return the entries of the next plans for replicated topics that they no longer include.

    Args:
        planned: source topics that they include.
        forgotten: source topics that no longer exist on either side.
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
                added=tuple(sorted(topic.added)),
                lost=begun.lost_runs(name, lost) if lost else (),
            )
        )
    return tuple(found)


def _copied(topic: PlannedTopic | LeftTopic, count: int) -> Copied:
    lost = {number: Target(one.destination, one.destination_id) for one in topic.lost for number in one.partitions}
    target = Target(topic.destination, topic.destination_id)
    return Copied(target, count, frozenset(topic.unbegun or ()), lost, frozenset(topic.added))


def by_topic(runs: Runs, topics: Collection[str]) -> dict[str, list[OffsetMapping]]:
    """Return the segments of these topics; topics without any are omitted."""
    found: dict[str, list[OffsetMapping]] = {}
    for place in runs if topics else ():  # not their values: most of these are never read
        if place[0] in topics:
            found.setdefault(place[0], []).extend(runs[place])
    return {topic: of_topic for topic, of_topic in found.items() if of_topic}


def _by_map(runs: Sequence[OffsetMapping]) -> Copied:
    newest = max(runs, key=lambda run: (run.checkpoint_at_ms, run.sequence_base))
    begun = {run.partition for run in runs}
    count = max(begun) + 1
    return Copied(Target(newest.destination, newest.destination_id), count, frozenset(range(count)) - begun, {})


def _of_older(previous: Iterable[Plan], runs: Runs) -> dict[str, Copied]:
    """Return the topics of plans of older versions, which do not record started partitions: those assigned to a slot
    have started, and those that wait for one of `_HAD_RUNS`, such as a pause. If the map has lost any of these, those
    of other partitions may be lost as well."""
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
