"""From facts to a plan: what to create, what each slot copies, what waits and why. Pure.

A partition that the link copies for the first time needs its start looked up, which is I/O. So planning has two steps:
`survey` says what must be looked up, and `compose` makes the plan with the answers.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from strait.config.groups import DEFAULT_GROUP
from strait.config.links import Link
from strait.model import ClusterFacts, TopicPartition
from strait.planning.assignment.budgets import budgets_of
from strait.planning.assignment.slots import Assignment, Place, deal, group_of
from strait.planning.history.load import Load, rates
from strait.planning.plan.draft import Draft as Draft
from strait.planning.plan.draft import in_order, joined
from strait.planning.plan.group_sync import planned_sync
from strait.planning.plan.pauses import Pauses, held, waiting_of
from strait.planning.risks.risks import Risk
from strait.planning.topic_sync import heartbeats
from strait.planning.topic_sync.actions import Action as TopicAction
from strait.planning.topic_sync.actions import CreateHeartbeats, CreateTopic
from strait.planning.topic_sync.creation import Destinations, find_destinations
from strait.planning.topic_sync.sync import TopicSync
from strait.planning.topics.decisions import decisions_of, deleted_destinations, judge_decided, still_open
from strait.planning.topics.identity import (
    Action,
    Change,
    Halted,
    New,
    Unchanged,
)
from strait.planning.topics.lost_mappings import Begun, left_after
from strait.planning.topics.new_partitions import NewPartition, StartRequest, begin
from strait.planning.topics.policies import start_of, topic_policy
from strait.planning.topics.selection import Selection, select
from strait.planning.topics.start_offsets import StartOffsets, start_at
from strait.reasons import Reason
from strait.state.schema import (
    Decision,
    Loss,
    OffsetMapping,
    Plan,
    PlannedSettings,
    PlannedTopic,
    TopicPolicy,
    Waiting,
)

Runs = Mapping[tuple[str, int], tuple[OffsetMapping, ...]]
_NO_SYNC = TopicSync()
_NO_LOADS: Mapping[TopicPartition, Load] = {}


@dataclass(frozen=True, slots=True)
class Survey:
    """What both clusters and the link's own past say.

    Attributes:
        copyable: partitions to copy whose runs fit both topics as they are now.
        new: partitions to copy that need a first run.
        halted: partitions that are not copied on, because a topic of theirs is not what it was.
        policies: source topic -> how it is copied, of every topic that has a home.
        begun: what was copied before, as far as the plans in force and the map tell.
        clusters: Kafka's IDs of source and destination.
        decisions: what was decided once and is not over. ``decided``: source topic -> the one that was followed.
    """

    selection: Selection
    destinations: Destinations
    copyable: tuple[TopicPartition, ...]
    new: Mapping[TopicPartition, StartRequest]
    halted: Mapping[TopicPartition, Change]
    waiting: tuple[Waiting, ...]
    policies: Mapping[str, TopicPolicy]
    begun: Begun
    create_heartbeats: CreateHeartbeats | None = None
    clusters: tuple[str, str] = ("", "")
    decisions: tuple[Decision, ...] = ()
    decided: Mapping[str, Decision] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What would make the link as it is configured.

    Attributes:
        create: destination topics to create; they are planned once they are there.
        drafts: task group -> its plan, of those that the published ones do not say already.
        plans: task group -> its plan in force, which it was decided from; none before the first.
        new: partitions that get their first run with this plan, each with where it starts on both sides.
        sync: what else copies need.
        state_changes: state topic -> configurations that it is to get, so that it loses no record and stays small.
        state_risks: what may lose the link's state, or let it grow, and is not set without a decision.
    """

    create: tuple[CreateTopic, ...]
    drafts: Mapping[str, Draft]
    plans: Mapping[str, Plan]
    new: Mapping[TopicPartition, NewPartition]
    survey: Survey
    sync: TopicSync = _NO_SYNC
    state_changes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    state_risks: tuple[Risk, ...] = ()

    @property
    def groups(self) -> dict[str, Draft]:
        """Every task group as it would be."""
        return {group: Draft.of(plan) for group, plan in self.plans.items()} | dict(self.drafts)

    @property
    def draft(self) -> Draft | None:
        """The whole link as it would be, all task groups together; None where no plan changes."""
        return joined(self.groups, sorted(self.groups)) if self.drafts else None

    @property
    def before(self) -> Draft | None:
        """The whole link as it is; None before the first plan."""
        return joined({group: Draft.of(plan) for group, plan in self.plans.items()}, sorted(self.groups))

    @property
    def previous(self) -> Plan | None:
        """The plan in force of the task group that every link has."""
        return self.plans.get(DEFAULT_GROUP)

    @property
    def actions(self) -> tuple[TopicAction, ...]:
        """All that is to be done to topics and rights, in the order in which it is done."""
        beats = self.survey.create_heartbeats
        return (*self.create, *(() if beats is None else (beats,)), *self.sync.actions)

    @property
    def empty(self) -> bool:
        """Nothing is to be done."""
        return not self.actions and not self.drafts

    def first_runs(self, now_ms: int) -> list[OffsetMapping]:
        """The first run of every new partition, to be published with the plan."""
        return [new.first_run(partition, now_ms) for partition, new in sorted(self.new.items())]

    def losses(self, link: str, now_ms: int) -> list[Loss]:
        """What the ledger must hold of topics that are not what they were, to be published with the plan: each once."""
        waited = {waits for plan in self.plans.values() for waits in _waiting(plan.waiting)}
        noted: list[tuple[TopicPartition, Change, Action]] = [
            (partition, change, "halted")
            for partition, change in self.survey.halted.items()
            if change.is_loss and (partition, change.reason) not in waited
        ]
        noted += [
            (partition, fresh.change, fresh.action)
            for partition, fresh in ((new, self.survey.new[new].fresh) for new in self.new)
            if fresh.change is not None
        ]
        return [change.loss(link, *partition, action, now_ms) for partition, change, action in sorted(noted)]


def survey(
    link_name: str,
    link: Link,
    source: ClusterFacts,
    destination: ClusterFacts,
    runs: Runs,
    refused: Mapping[str, str] | None = None,
    previous: Iterable[Plan] = (),
    came_back: Collection[str] = (),
) -> Survey:
    """Select topics, find their destinations, and hold them against the runs of the past.

    Args:
        refused: destination topics that could not be created, and why.
        previous: the plans in force. They tell which partitions have runs that the map has lost.
        came_back: topics of the source that links from the destination have made.

    Raises:
        ConfigError: the link would copy topics onto themselves or one another, or two topics onto one.
    """
    previous = tuple(previous)
    begun, decisions = Begun.of(previous, runs), decisions_of(previous)
    selection = select(
        link_name,
        link,
        source.topics,
        copied_before=set(begun.topics),
        came_back=came_back,
        shared_cluster_id=source.cluster_id if source.cluster_id == destination.cluster_id else None,
    )
    names = {topic: selection.names[topic] for topic in selection.selected}
    halted = deleted_destinations(link, names, source, destination, begun, decisions)
    destinations = find_destinations(link, selection, source, destination, refused, begun, halted)
    copyable: list[TopicPartition] = []
    new: dict[TopicPartition, StartRequest] = {}
    decided: dict[str, Decision] = {}
    policies: dict[str, TopicPolicy] = {}
    for pair in destinations.pairs:
        start, policy = start_of(link, pair.source.topic), topic_policy(link, pair.source, pair.destination)
        policies[pair.source.topic] = policy
        joins = pair.source.topic in begun.topics
        for number in range(pair.fit):
            partition = TopicPartition(pair.source.topic, number)
            verdict, decision = judge_decided(
                pair, number, begun, policy, start_at(start, number, joins=joins), decisions
            )
            if decision is not None:
                decided[pair.source.topic] = decision
            match verdict:
                case Unchanged():
                    copyable.append(partition)
                    if decision is not None:  # its slot begins the other topic, by what the plan says
                        policies[pair.source.topic] = policy.model_copy(update={"on_loss": decision.action})
                case New() as fresh:
                    new[partition] = StartRequest(TopicPartition(pair.destination.topic, number), fresh)
                case Halted(change):
                    halted[partition] = change
    waiting = (*destinations.waiting, *_halted(halted))
    return Survey(
        selection,
        destinations,
        tuple(copyable),
        new,
        halted,
        waiting,
        policies,
        begun,
        heartbeats.missing(link, source),
        (source.cluster_id, destination.cluster_id),
        still_open(decisions, decided.values(), policies.keys(), begun),
        decided,
    )


def compose(
    link: Link,
    found: Survey,
    starts: StartOffsets,
    previous: Mapping[str, Plan],
    *,
    stopped: bool,
    pauses: Pauses = (),
    sync: TopicSync = _NO_SYNC,
    loads: Mapping[TopicPartition, Load] = _NO_LOADS,
    settings: PlannedSettings | None = None,
    now_ms: int = 0,
) -> Proposal:
    """Make the proposal.

    Args:
        starts: has an answer or a failure for both sides of every partition in ``found.new``.
        previous: task group -> its plan in force.
        pauses: those of the link; the plans carry them on.
        sync: what is to be done to copies; the plans remember it.
        loads: what was reported of partitions just now.
        settings: which settings ``link`` has; the plan of the `default` group says so.
    """
    paused = held(pauses, [*found.copyable, *found.new]) if pauses else {}
    begun = {partition: beginning for partition, beginning in found.new.items() if partition not in paused}
    new, waiting = begin(begun, found.destinations.pairs, starts)
    copyable = [partition for partition in found.copyable if partition not in paused]
    dealt = deal(link, [*copyable, *new], previous, loads, starts.histories)
    topics = _planned(link, found, dealt, new.keys())
    left = left_after(found.begun, found.policies.keys(), sync.retirement.forgotten)
    waits = _by_group(link, [*sync.waiting(found.waiting, now_ms), *waiting, *waiting_of(paused)])
    lane = link.backfill.group if link.backfill else None
    budgets = budgets_of(link.topics, dealt.places, dealt.slots, rates(loads), previous, lane)
    drafts = {}
    for group in sorted({*link.groups, *previous}):
        known = group in link.groups
        draft = Draft(
            slots=dealt.slots[group] if known else previous[group].slots,
            stopped=stopped or not (group == DEFAULT_GROUP or group in dealt.used or _pauses(waits.get(group, ()))),
            topics=topics.get(group, ()),
            waiting=waits.get(group, ()),
            budgets=budgets.get(group, ()),
            heartbeat=heartbeats.planned(link) if known else None,
            consumer_groups=planned_sync(link) if group == DEFAULT_GROUP else None,
            settings=settings if group == DEFAULT_GROUP else None,
            pauses=tuple(pauses),
            decisions=found.decisions,
            stop=previous[DEFAULT_GROUP].stop if stopped and DEFAULT_GROUP in previous else None,
            copied_from=sync.memory.copied_from,
            acls=sync.given,
            left=left,
            source_cluster=found.clusters[0],
            destination_cluster=found.clusters[1],
        )
        if group not in previous or Draft.of(previous[group]) != draft:
            drafts[group] = draft
    return Proposal(found.destinations.create, drafts, previous, new, found, sync)


def _pauses(waiting: Iterable[Waiting]) -> bool:
    """Something would be copied if nobody had paused it: its application stays, or going on would take a start of
    it."""
    return any(item.reason == Reason.PAUSED for item in waiting)


def _halted(halted: Mapping[TopicPartition, Change]) -> Iterator[Waiting]:
    together: dict[tuple[str, Reason, str], list[int]] = {}
    for partition, change in halted.items():
        together.setdefault((partition.topic, change.reason, change.detail), []).append(partition.partition)
    for (topic, reason, detail), numbers in together.items():
        yield Waiting(topic=topic, partitions=tuple(numbers), reason=reason, detail=detail)


def _waiting(waiting: Iterable[Waiting]) -> set[tuple[TopicPartition, str]]:
    return {(TopicPartition(item.topic, number), item.reason) for item in waiting for number in item.partitions}


def _planned(
    link: Link, found: Survey, dealt: Assignment, started: Collection[TopicPartition]
) -> dict[str, tuple[PlannedTopic, ...]]:
    """Task group -> its topics. One that several groups copy partitions of is in the plan of each; one of which
    something is not copied is in that of its own group, where it is said why."""
    places: dict[str, list[tuple[int, Place]]] = {}
    for (topic, number), place in dealt.places.items():
        places.setdefault(topic, []).append((number, place))
    planned: dict[str, list[PlannedTopic]] = {}
    for pair in found.destinations.pairs:
        topic, count = pair.source.topic, pair.source.partitions
        without = found.begun.without_runs(topic, count, started)
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
                    policy=found.policies[topic],
                    unbegun=tuple(number for number, lost in without.items() if not lost),
                    lost=found.begun.lost_runs(topic, [number for number, lost in without.items() if lost]),
                )
            )
    return {group: tuple(topics) for group, topics in planned.items()}


def _by_group(link: Link, waiting: Iterable[Waiting]) -> dict[str, tuple[Waiting, ...]]:
    """Task group -> what waits of the topics that belong to it."""
    found: dict[str, list[Waiting]] = {}
    for item in waiting:
        found.setdefault(group_of(link, item.topic), []).append(item)
    return {group: in_order(items) for group, items in found.items()}
