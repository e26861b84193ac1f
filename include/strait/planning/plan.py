"""From facts to a plan: what to create, what each slot copies, what waits and why. Pure.

A partition that the link copies for the first time needs its start looked up, which is I/O. So planning has two steps:
`survey` says what must be looked up, and `compose` makes the plan with the answers.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from strait.config import Link
from strait.model import ClusterFacts, TopicPartition
from strait.planning.assignment import assign
from strait.planning.selection import Selection, select
from strait.planning.topics import CreateTopic, Homes, Pair, find_homes
from strait.reasons import Reason
from strait.state.schema import Plan, PlannedTopic, Run, Waiting

Runs = Mapping[tuple[str, int], tuple[Run, ...]]


@dataclass(frozen=True, slots=True)
class Survey:
    """What both clusters and the link's own past say.

    Attributes:
        copyable: partitions to copy whose runs fit both topics as they are now.
        new: partitions to copy that have no run yet, with their destination partition.
    """

    selection: Selection
    homes: Homes
    copyable: tuple[TopicPartition, ...]
    new: Mapping[TopicPartition, TopicPartition]
    waiting: tuple[Waiting, ...]


@dataclass(frozen=True, slots=True)
class Starts:
    """Where new partitions begin, as looked up.

    Attributes:
        source: source partition -> the first source offset to copy.
        destination: destination partition -> the offset that the next record there gets.
        failures: source or destination partition -> why its offset could not be looked up.
    """

    source: Mapping[TopicPartition, int] = field(default_factory=dict)
    destination: Mapping[TopicPartition, int] = field(default_factory=dict)
    source_failures: Mapping[TopicPartition, str] = field(default_factory=dict)
    destination_failures: Mapping[TopicPartition, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan but for its version, producer id and time: all of it that follows from facts. Equal drafts, equal plans."""

    slots: int
    stopped: bool
    topics: tuple[PlannedTopic, ...]
    waiting: tuple[Waiting, ...]

    @classmethod
    def of(cls, plan: Plan) -> "Draft":
        """The draft that a published plan was made of."""
        return cls(plan.slots, plan.stopped, plan.topics, plan.waiting)

    def as_plan(self, *, link: str, group: str, version: int, producer_id: int, now_ms: int) -> Plan:
        """The plan to publish."""
        return Plan(
            link=link,
            group=group,
            version=version,
            producer_id=producer_id,
            stopped=self.stopped,
            slots=self.slots,
            topics=self.topics,
            waiting=self.waiting,
            published_at_ms=now_ms,
        )


@dataclass(frozen=True, slots=True)
class Proposal:
    """What would make the link as it is configured.

    Attributes:
        create: destination topics to create; they are planned once they are there.
        draft: the plan, or None where the published one says the same already.
        previous: the plan in force, which it was decided from; None before the first.
        new: partitions that get their first run with this plan, each with where it starts on both sides.
    """

    create: tuple[CreateTopic, ...]
    draft: Draft | None
    previous: Plan | None
    new: Mapping[TopicPartition, "NewPartition"]
    survey: Survey

    @property
    def empty(self) -> bool:
        """Nothing is to be done."""
        return not self.create and self.draft is None

    def first_runs(self, now_ms: int) -> list[Run]:
        """The first run of every new partition, to be published with the plan."""
        return [new.first_run(partition, now_ms) for partition, new in sorted(self.new.items())]


@dataclass(frozen=True, slots=True)
class NewPartition:
    """Where copying of a partition begins. Ids pin the two topics."""

    destination: str
    source_id: str
    destination_id: str
    source_base: int
    destination_base: int

    def first_run(self, partition: TopicPartition, now_ms: int) -> Run:
        """Nothing has been written yet: sequence 0 is the record at ``source_base``."""
        return Run(
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
        )


def survey(
    link_name: str,
    link: Link,
    source: ClusterFacts,
    destination: ClusterFacts,
    runs: Runs,
    refused: Mapping[str, str] | None = None,
) -> Survey:
    """Select topics, find their destinations, and hold them against the runs of the past.

    Args:
        refused: destination topics that could not be created, and why.

    Raises:
        ConfigError: the link would copy topics onto themselves.
    """
    one_cluster = source.cluster_id == destination.cluster_id
    selection = select(
        link.topics,
        source.topics,
        copied_before={topic for topic, _ in runs},
        copies=link.naming if one_cluster else None,
    )
    homes = find_homes(link_name, link, selection, source, destination, refused)
    copyable: list[TopicPartition] = []
    new: dict[TopicPartition, TopicPartition] = {}
    waiting = list(homes.waiting)
    for pair in homes.pairs:
        changed: dict[tuple[Reason, str], list[int]] = {}
        for number in range(pair.fit):
            partition = TopicPartition(pair.source.topic, number)
            past = runs.get(partition)
            if past is None:
                new[partition] = TopicPartition(pair.destination.topic, number)
            elif (found := _ground_changed(pair, past[-1])) is not None:
                changed.setdefault(found, []).append(number)
            else:
                copyable.append(partition)
        waiting += [
            Waiting(topic=pair.source.topic, partitions=tuple(numbers), reason=reason, detail=detail)
            for (reason, detail), numbers in changed.items()
        ]
    return Survey(selection, homes, tuple(copyable), new, tuple(waiting))


def compose(link: Link, group: str, found: Survey, starts: Starts, previous: Plan | None, *, stopped: bool) -> Proposal:
    """Make the proposal. ``starts`` has an offset or a failure for both sides of every partition in ``found.new``."""
    new, waiting = _begin(found, starts)
    slots = link.groups[group].slots
    before = {} if previous is None else slots_by_partition(previous.topics)
    assigned = assign([*found.copyable, *new], before, slots, 0 if previous is None else previous.slots)
    topics = tuple(_planned(pair, assigned) for pair in found.homes.pairs)
    draft = Draft(slots, stopped, topics, _in_order([*found.waiting, *waiting]))
    unchanged = previous is not None and Draft.of(previous) == draft
    return Proposal(found.homes.create, None if unchanged else draft, previous, new, found)


def _ground_changed(pair: Pair, run: Run) -> tuple[Reason, str] | None:
    if run.destination != pair.destination.topic:
        return Reason.NAMING_CHANGED, f"copied to {run.destination} so far, now called {pair.destination.topic}"
    if run.source_id != pair.source.topic_id:
        return (
            Reason.SOURCE_RECREATED,
            f"the copied topic had id {run.source_id}, the present one {pair.source.topic_id}",
        )
    if run.destination_id != pair.destination.topic_id:
        detail = f"{run.destination} had id {run.destination_id}, the present one {pair.destination.topic_id}"
        return Reason.DESTINATION_RECREATED, detail
    return None


def _begin(found: Survey, starts: Starts) -> tuple[dict[TopicPartition, NewPartition], list[Waiting]]:
    pairs = {pair.source.topic: pair for pair in found.homes.pairs}
    new: dict[TopicPartition, NewPartition] = {}
    waiting = []
    for partition, target in found.new.items():
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
        )
    return new, waiting


def _failure(partition: TopicPartition, target: TopicPartition, starts: Starts) -> Waiting | None:
    if partition in starts.source_failures:
        reason, detail = Reason.SOURCE_LEADERLESS, starts.source_failures[partition]
    elif target in starts.destination_failures:
        reason, detail = Reason.DESTINATION_LEADERLESS, starts.destination_failures[target]
    else:
        return None
    return Waiting(topic=partition.topic, partitions=(partition.partition,), reason=reason, detail=detail)


def slots_by_partition(topics: Iterable[PlannedTopic]) -> dict[TopicPartition, int]:
    """The slot of every partition that is copied."""
    return {
        TopicPartition(topic.source, number): slot
        for topic in topics
        for number, slot in enumerate(topic.slots)
        if slot is not None
    }


def _planned(pair: Pair, assigned: Mapping[TopicPartition, int]) -> PlannedTopic:
    return PlannedTopic(
        source=pair.source.topic,
        destination=pair.destination.topic,
        source_id=pair.source.topic_id,
        destination_id=pair.destination.topic_id,
        slots=tuple(assigned.get(TopicPartition(pair.source.topic, n)) for n in range(pair.source.partitions)),
    )


def _in_order(waiting: Iterable[Waiting]) -> tuple[Waiting, ...]:
    return tuple(sorted(waiting, key=lambda item: (item.topic, item.partitions, item.reason)))
