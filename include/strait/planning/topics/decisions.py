"""One-time decisions of an operator about a topic that was deleted on one side, and how they apply. Pure.

A decision replaces the topic's `on_loss` for this one loss. It names the replicated topics by their IDs, so it does not
apply to any others: once the offset map has segments of their successors the decision is over, and the next plan drops
it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from strait.config.links import Link
from strait.config.rules import rule_of
from strait.errors import ConfigError
from strait.model import ClusterFacts, TopicPartition
from strait.planning.topics.identity import Change, Halted, New, Unchanged, copied, judge
from strait.planning.topics.lost_mappings import Begun, judge_lost
from strait.planning.topics.pairs import Pair
from strait.planning.topics.start_offsets import StartAt
from strait.reasons import Reason
from strait.state.schema import Decision, Plan, TopicPolicy, Waiting, newest_of
from strait.text import plural, utc

RESOLVABLE = frozenset({Reason.DESTINATION_DELETED, Reason.DESTINATION_RECREATED, Reason.SOURCE_RECREATED})
"""Reasons for waiting that a one-time decision resolves."""


class CopiedTopics(NamedTuple):
    """IDs of the two topics that a partition was last replicated from and to; "" for one that the map does not
    record."""

    source_id: str
    destination_id: str


class Judged(NamedTuple):
    """``decision``: the decision that was applied; None: none was needed."""

    verdict: New | Halted | Unchanged
    decision: Decision | None = None


class Trace(NamedTuple):
    """Remains of a replicated topic in the offset map: the number of its records, and the Unix time when the last one
    was confirmed."""

    records: int
    last_ms: int

    def __str__(self) -> str:
        at = f", the last confirmed at {utc(self.last_ms)} UTC" if self.last_ms else ""
        return f"{plural(self.records, 'record')}{at}"


def decisions_of(plans: Iterable[Plan]) -> tuple[Decision, ...]:
    """Return the link's decisions, from the newest of its plans."""
    newest = newest_of(plans)
    return () if newest is None else newest.decisions


def last_copied(partition: TopicPartition, begun: Begun) -> CopiedTopics | None:
    """Return the topics that the partition was last replicated from and to; None: it never was."""
    past = begun.runs.get(partition, ())
    if past:
        last = max(past, key=lambda run: (run.checkpoint_at_ms, run.sequence_base))
        return CopiedTopics(last.source_id, last.destination_id)
    return CopiedTopics("", begun.target(partition).topic_id) if begun.lost(partition) else None


def judge_decided(
    pair: Pair, number: int, begun: Begun, policy: TopicPolicy, begin: StartAt, decisions: Sequence[Decision]
) -> Judged:
    """Compare a partition's history with its current topics, by the topic's policy or else by a one-time decision."""

    def judged(by: TopicPolicy) -> New | Halted | Unchanged:
        if begun.lost(partition):
            return judge_lost(pair, number, begun, by)
        return judge(pair, begun.runs.get(partition, ()), begin, by)

    partition = TopicPartition(pair.source.topic, number)
    verdict = judged(policy)
    if not isinstance(verdict, Halted):
        return Judged(verdict)
    decision = _about(decisions, partition, begun)
    decided = verdict if decision is None else judged(policy.model_copy(update={"on_loss": decision.action}))
    if decision is None or isinstance(decided, Halted):
        return Judged(verdict)
    if isinstance(decided, New) and decided.change is not None:
        change = decided.change._replace(detail=f"{decided.change.detail}; {described(decision)}")
        decided = replace(decided, change=change)
    return Judged(decided, decision)


def deleted_destinations(
    link: Link,
    names: Mapping[str, str],
    source: ClusterFacts,
    destination: ClusterFacts,
    begun: Begun,
    decisions: Sequence[Decision],
) -> dict[TopicPartition, Change]:
    """Return the partitions that were replicated to a topic which the destination no longer has, if neither their rule
    nor a decision specifies how to continue. Nothing is created for their topics.

    Args:
        names: source topic -> destination topic, of topics that the source has.
    """
    found = {}
    for topic, target in names.items():
        places = [TopicPartition(topic, number) for number in range(source.topics[topic].partitions)]
        places = [place for place in places if last_copied(place, begun) is not None]
        if target in destination.topics or not places or rule_of(link.topics, topic).on_loss != "halt":
            continue
        if any(_about(decisions, place, begun) for place in places) or target not in _targets(places, begun):
            continue
        detail = (
            f"{destination.name} does not have topic {target} any more, or hides it from this principal; the link had "
            f"copied {trace(topic, begun)}, into it, and {source.name} still has {topic}; nothing is created before "
            "strait resolve"
        )
        for place in places:
            past = begun.runs.get(place, ())
            lost = copied(past) if past else (0, 0)
            found[place] = Change(Reason.DESTINATION_DELETED, detail, "destination", lost)
    return found


def trace(topic: str, begun: Begun) -> Trace:
    """Return the number of records and the last confirmation of a replicated topic, from the offset map."""
    of_topic = [past for place, past in begun.runs.items() if place[0] == topic and past]
    held = (copied(past) for past in of_topic)
    return Trace(
        sum(end - first for first, end in held),
        max((run.checkpoint_at_ms for past in of_topic for run in past), default=0),
    )


def still_open(
    decisions: Sequence[Decision], used: Collection[Decision], present: Collection[str], begun: Begun
) -> tuple[Decision, ...]:
    """Return the decisions that the next plan keeps: those that were just applied, and those of which a topic is
    missing.

    Args:
        present: source topics that both clusters have.
    """

    def waits(decision: Decision) -> bool:
        places = [TopicPartition(*place) for place in begun.runs if place[0] == decision.topic]
        return decision.topic not in present and any(_about([decision], place, begun) for place in places)

    return tuple(decision for decision in decisions if decision in used or waits(decision))


def resolve(waiting: Iterable[Waiting], begun: Begun, made: Decision) -> tuple[Decision, ...]:
    """Return the decision for each pair of topics that partitions of ``made``'s topic were replicated from and to.

    Raises:
        ConfigError: nothing of the topic waits for such a decision.
    """
    reasons = {item.reason for item in waiting if item.topic == made.topic}
    if not reasons & RESOLVABLE:
        raise ConfigError(f"topic {made.topic}", [_nothing_to_resolve(reasons)])
    numbers = {place[1] for place in begun.runs if place[0] == made.topic}
    if made.topic in begun.copied:
        numbers |= set(range(begun.copied[made.topic].partitions))
    pairs = {last_copied(TopicPartition(made.topic, number), begun) for number in numbers} - {None}
    return tuple(made.model_copy(update=pair._asdict()) for pair in sorted(filter(None, pairs)))


def described(decision: Decision) -> str:
    """Return the decision as a sentence: the action, its author, its time and its reason."""
    text = f"{decision.action} was decided by {decision.by} at {utc(decision.at_ms)} UTC"
    return f"{text}: {decision.reason}" if decision.reason else text


def _about(decisions: Sequence[Decision], partition: TopicPartition, begun: Begun) -> Decision | None:
    known = [decision for decision in decisions if decision.topic == partition.topic]
    ids = last_copied(partition, begun) if known else None
    return next((item for item in reversed(known) if (item.source_id, item.destination_id) == ids), None)


def _targets(places: Iterable[TopicPartition], begun: Begun) -> set[str]:
    """Return the names of the topics that these partitions were replicated to. After a change of `naming`, the newly
    configured topic is not one of them: it never existed."""
    newest = (max(past, key=lambda run: run.checkpoint_at_ms) for place in places if (past := begun.runs.get(place)))
    return {run.destination for run in newest} | {begun.target(place).name for place in places if begun.lost(place)}


def _nothing_to_resolve(reasons: Collection[str]) -> str:
    if Reason.SOURCE_MISSING in reasons:
        return (
            "the source does not have it, so there is nothing to continue with: create it there, or take it out of "
            "the link's `topics`"
        )
    waits = f"it waits with {', '.join(sorted(reasons))}" if reasons else "the current plan waits for nothing"
    return f"there is nothing to resolve: {waits}. Losses that slots report are decided by `on_loss`"
