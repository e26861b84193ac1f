"""Plans a link from observed facts: topics to create, partitions per slot, waiting partitions and reasons. Pure.

The start offset of a partition that the link replicates for the first time requires a lookup, which is I/O. So planning
has two steps: `survey` returns the lookups to make, and `compose` makes the plan with their results.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from strait.config.groups import DEFAULT_GROUP
from strait.config.links import Link
from strait.model import ClusterFacts, TopicPartition
from strait.planning.assignment.budgets import Lane, backfill_of, budgets_of, limits_of
from strait.planning.assignment.slots import Assignment, deal
from strait.planning.history.load import Load, rates
from strait.planning.plan.division import topics_of_groups, waiting_of_groups
from strait.planning.plan.draft import Draft, joined
from strait.planning.plan.group_sync import planned_sync
from strait.planning.plan.pauses import Pauses, held, waiting_of
from strait.planning.risks.risks import Risk
from strait.planning.topic_sync import heartbeats
from strait.planning.topic_sync.actions import Action as TopicAction
from strait.planning.topic_sync.actions import CreateHeartbeats, CreateTopic
from strait.planning.topic_sync.creation import Destinations, find_destinations
from strait.planning.topic_sync.sync import TopicSync
from strait.planning.topics.decisions import decisions_of, deleted_destinations, judge_decided, still_open
from strait.planning.topics.identity import Action, Change, Halted, New, Unchanged
from strait.planning.topics.lost_mappings import Begun, left_after
from strait.planning.topics.new_partitions import NewPartition, StartRequest, begin
from strait.planning.topics.policies import start_of, topic_policy
from strait.planning.topics.selection import NONE_CAME_BACK, CameBack, Selection, select
from strait.planning.topics.start_offsets import StartOffsets, start_at
from strait.planning.topics.transforms import untransformed
from strait.planning.topics.unapproved import NOTHING, Unapproved
from strait.reasons import Reason
from strait.state.schema import (
    Decision,
    Loss,
    OffsetMapping,
    Plan,
    PlannedBackfill,
    PlannedSettings,
    TopicBound,
    TopicPolicy,
    Waiting,
)

Runs = Mapping[tuple[str, int], tuple[OffsetMapping, ...]]
_NO_SYNC = TopicSync()
_NO_LOADS: Mapping[TopicPartition, Load] = {}


@dataclass(frozen=True, slots=True)
class Survey:
    """State of both clusters and the link's own history.

    Attributes:
        copyable: partitions to replicate whose offset segments fit both current topics.
        new: partitions to replicate that need a first offset segment.
        halted: partitions that are not continued, since a topic was deleted or recreated, or its destination renamed.
        policies: source topic -> its replication policy, for every topic that has a destination.
        begun: topics and partitions replicated before, as far as the current plans and the offset map show.
        clusters: Kafka's IDs of source and destination.
        decisions: one-time decisions of operators that still apply. ``decided``: source topic -> the decision that was
            followed.
        unapproved: changes that are excluded.
        moved_in: source partition that starts -> the offset before which its records are copies that another tool made
            and the link leaves out.
        bounds: the ends of its topics; see `strait.planning.plan.bounds`.
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
    unapproved: Unapproved = NOTHING
    moved_in: Mapping[TopicPartition, int] = field(default_factory=dict)
    bounds: tuple[TopicBound, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """Changes that make the link as it is configured.

    Attributes:
        create: destination topics to create; they are planned once they exist.
        drafts: task group -> its new plan, for task groups whose published plan differs.
        plans: task group -> its current plan, which the proposal is based on; empty before the first plan.
        new: partitions that get their first offset segment with this plan, with their start offsets on both sides.
        sync: other changes that destination topics need.
        state_changes: state topic -> configurations to set, so that it loses no record and stays small.
        deleted_there: loss log entries of records that destination topics deleted by their own settings.
        state_risks: risks of losing the link's state or letting it grow, which are not fixed without a decision.
        permitted: the part of it that needs no approval, if the link requires approval and another part needs it.
        limited: task groups whose new plan has topics that are not proven to be the link's.
    """

    create: tuple[CreateTopic, ...]
    drafts: Mapping[str, Draft]
    plans: Mapping[str, Plan]
    new: Mapping[TopicPartition, NewPartition]
    survey: Survey
    sync: TopicSync = _NO_SYNC
    state_changes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    state_risks: tuple[Risk, ...] = ()
    permitted: "Proposal | None" = None
    deleted_there: tuple[Loss, ...] = ()
    limited: frozenset[str] = frozenset()

    @property
    def groups(self) -> dict[str, Draft]:
        """Every task group as proposed."""
        return {group: Draft.of(plan) for group, plan in self.plans.items()} | dict(self.drafts)

    @property
    def draft(self) -> Draft | None:
        """The whole link as proposed, all task groups combined; None if no plan changes."""
        return joined(self.groups, sorted(self.groups)) if self.drafts else None

    @property
    def before(self) -> Draft | None:
        """The whole link by its current plans; None before the first plan."""
        return joined({group: Draft.of(plan) for group, plan in self.plans.items()}, sorted(self.groups))

    @property
    def previous(self) -> Plan | None:
        """The current plan of the task group that every link has."""
        return self.plans.get(DEFAULT_GROUP)

    @property
    def actions(self) -> tuple[TopicAction, ...]:
        """All changes to topics and ACLs, in the order in which they are made."""
        beats = self.survey.create_heartbeats
        return (*self.create, *(() if beats is None else (beats,)), *self.sync.actions)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.actions and not self.drafts

    def first_runs(self, now_ms: int) -> list[OffsetMapping]:
        """Return the first offset segment of every new partition, to be published with the plan."""
        return [new.first_run(partition, now_ms) for partition, new in sorted(self.new.items())]

    def losses(self, link: str, now_ms: int) -> list[Loss]:
        """Return the loss log entries of topics that were deleted or recreated, each once.

        They are published with the plan.
        """
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
    came_back: CameBack = NONE_CAME_BACK,
    unapproved: Unapproved = NOTHING,
) -> Survey:
    """Select topics, find their destinations, and compare them with the recorded offset segments.

    ``refused``: destination topic that could not be created -> the reason.

    Args:
        previous: the current plans. They show which partitions have offset segments that the map has lost.
        came_back: source topics created by links from the destination.
        unapproved: changes to leave out; ``refused`` has its destination topics.

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
        unapproved=unapproved,
    )
    names = {topic: selection.names[topic] for topic in selection.selected}
    halted = deleted_destinations(link, names, source, destination, begun, decisions)
    destinations = find_destinations(link, selection, source, destination, refused, begun, halted)
    copyable: list[TopicPartition] = []
    new: dict[TopicPartition, StartRequest] = {}
    decided: dict[str, Decision] = {}
    policies: dict[str, TopicPolicy] = {}
    for pair in destinations.pairs:
        start = start_of(link, pair.source.topic)
        policy = unapproved.policy(pair.source.topic, topic_policy(link, pair.source, pair.destination))
        policies[pair.source.topic] = policy
        if (unfit := untransformed(pair, begun, policy)) is not None:
            halted |= {TopicPartition(pair.source.topic, number): unfit for number in range(pair.fit)}
            continue
        for number in range(pair.fit):
            partition = TopicPartition(pair.source.topic, number)
            at = start_at(start, number, joins=begun.joins(partition))
            verdict, decision = judge_decided(pair, number, begun, policy, at, decisions)
            if decision is not None:
                decided[pair.source.topic] = decision
            match verdict:
                case Unchanged():
                    copyable.append(partition)
                    if decision is not None:  # its slot starts the new source topic by the plan's `on_loss`
                        policies[pair.source.topic] = policy.model_copy(update={"on_loss": decision.action})
                case New() as fresh:
                    new[partition] = StartRequest(TopicPartition(pair.destination.topic, number), fresh)
                case Halted(change):
                    halted[partition] = change
    waiting = tuple(unapproved.explained([*destinations.waiting, *_halted(halted)]))
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
        unapproved,
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
        starts: has a result or a failure for both sides of every partition in ``found.new``.
        previous: task group -> its current plan.
        pauses: those of the link; the plans carry them over.
        sync: changes to destination topics; the plans record them.
        loads: partition -> its load by the latest reports.
        settings: identifies the settings of ``link``; recorded in the plan of the `default` task group.
    """
    paused = held(pauses, [*found.copyable, *found.new]) if pauses else {}
    begun = {partition: beginning for partition, beginning in found.new.items() if partition not in paused}
    new, waiting = begin(begun, found.destinations.pairs, starts, found.policies)
    copyable = [partition for partition in found.copyable if partition not in paused]
    lane = _lane(link, found.unapproved, now_ms)
    takes_late = lane is None or lane.takes_late
    dealt = deal(link, [*copyable, *new], previous, loads, starts.histories, takes_late=takes_late)
    topics = topics_of_groups(link, found.destinations.pairs, found.begun, found.policies, dealt, new.keys())
    left = left_after(found.begun, found.policies.keys(), sync.retirement.forgotten)
    waits = waiting_of_groups(link, [*sync.waiting(found.waiting, now_ms), *waiting, *waiting_of(paused)])
    limits = limits_of(link.topics) if found.unapproved.limits is None else found.unapproved.limits
    class_of = {topic: policy.topic_class for topic, policy in found.policies.items()}
    budgets = budgets_of(limits, class_of, dealt.places, dealt.slots, rates(loads), previous, lane)
    drafts = {}
    for group in sorted({*link.groups, *previous}):
        known = group in link.groups
        draft = Draft(
            slots=dealt.slots[group] if known else previous[group].slots,
            stopped=stopped or not (group == DEFAULT_GROUP or group in dealt.used or _pauses(waits.get(group, ()))),
            topics=topics.get(group, ()),
            waiting=waits.get(group, ()),
            budgets=budgets.get(group, ()),
            backfill=_backfill(group, lane, dealt, loads, previous.get(group), found.unapproved),
            heartbeat=heartbeats.planned(link) if known else None,
            consumer_groups=planned_sync(link) if group == DEFAULT_GROUP else None,
            settings=settings if group == DEFAULT_GROUP else None,
            pauses=tuple(pauses),
            decisions=found.decisions,
            bounds=found.bounds,
            stop=previous[DEFAULT_GROUP].stop if stopped and DEFAULT_GROUP in previous else None,
            copied_from=sync.memory.copied_from,
            acls=sync.given,
            left=left,
            source_cluster=found.clusters[0],
            destination_cluster=found.clusters[1],
            replaced=previous[group].replaced if group in previous else None,
        )
        if group not in previous or Draft.of(previous[group]) != draft:
            drafts[group] = draft
    return Proposal(found.destinations.create, drafts, previous, new, found, sync)


def _lane(link: Link, unapproved: Unapproved, now_ms: int) -> Lane | None:
    if link.backfill is None:
        return None
    limits = link.topics.budget.backfill if unapproved.limits is None else unapproved.backfill
    return Lane.of(link.backfill.group, limits, now_ms)


def _backfill(
    group: str,
    lane: Lane | None,
    dealt: Assignment,
    loads: Mapping[TopicPartition, Load],
    previous: Plan | None,
    unapproved: Unapproved,
) -> PlannedBackfill | None:
    if lane is not None and group == lane.group:
        return backfill_of(lane, dealt.places, dealt.slots, rates(loads), previous)
    return previous.backfill if previous is not None and unapproved.limits is not None else None


def _pauses(waiting: Iterable[Waiting]) -> bool:
    """Return whether a partition is not replicated only because it is paused.

    Its application keeps running; otherwise resuming the partition would have to start it.
    """
    return any(item.reason == Reason.PAUSED for item in waiting)


def _halted(halted: Mapping[TopicPartition, Change]) -> Iterator[Waiting]:
    together: dict[tuple[str, Reason, str], list[int]] = {}
    for partition, change in halted.items():
        together.setdefault((partition.topic, change.reason, change.detail), []).append(partition.partition)
    for (topic, reason, detail), numbers in together.items():
        yield Waiting(topic=topic, partitions=tuple(numbers), reason=reason, detail=detail)


def _waiting(waiting: Iterable[Waiting]) -> set[tuple[TopicPartition, str]]:
    return {(TopicPartition(item.topic, number), item.reason) for item in waiting for number in item.partitions}
