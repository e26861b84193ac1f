"""Ends of replication: the source offset before which each partition ends, and which partitions have reached it. Pure.

An end is determined once for an `until`, and plans record it; so it stays the same while the source is written to, and
copying ends exactly at it. A partition starts only once its end is known.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from strait.config.links import Link
from strait.config.rules import rule_of
from strait.config.start_offset import until_text
from strait.model import TopicPartition
from strait.planning.plan.planner import Survey
from strait.reasons import Reason
from strait.state.report_records import Report
from strait.state.schema import Plan, TopicBound, TopicPolicy, Waiting, newest_of

NO_END = -1


class EndAt(NamedTuple):
    """An end to query: at the first record with this timestamp (ms since 1970) or a later one, or after the last record."""

    at: int | Literal["latest"]


@dataclass(frozen=True, slots=True)
class Ends:
    """Ends by the source. ``failures``: why they are unknown of some partitions."""

    known: Mapping[TopicPartition, int]
    failures: Mapping[TopicPartition, str]


NOTHING = Ends({}, {})


@dataclass(frozen=True, slots=True)
class Bounds:
    """The ends of a survey's topics.

    Attributes:
        known: partition -> its end by the current plans or the rules; `NO_END`: the rule names none for it.
        wanted: partition -> the end to query.
        ahead: topics whose `until` is a time that has not passed.
        unapproved: topics whose present `until` no operator has approved, and the former one is not known for them.
        over: partitions that were copied up to their present ends.
        kept: records of topics that cannot be planned now, by the same `until`.
    """

    known: Mapping[TopicPartition, int]
    wanted: Mapping[TopicPartition, EndAt]
    ahead: frozenset[str]
    unapproved: frozenset[str]
    over: frozenset[TopicPartition]
    kept: tuple[TopicBound, ...]


def bounds_of(
    link: Link, found: Survey, plans: Collection[Plan], reached: Collection[TopicPartition], now_ms: int
) -> Bounds | None:
    """Return the ends of the topics' partitions, as far as they are known; None: no topic has one.

    Args:
        plans: the current ones. ``reached``: partitions that have reached the ends in them, by `reached_ends`.
    """
    newest = newest_of(plans)
    recorded = {} if newest is None else {bound.topic: bound for bound in newest.bounds}
    policies = {topic: policy for topic, policy in found.policies.items() if policy.until}
    if not policies and not recorded:
        return None
    sources = {pair.source.topic: pair.source.topic_id for pair in found.destinations.pairs}
    holding = {
        topic: bound
        for topic, bound in recorded.items()
        if topic in policies and (bound.until, bound.source_id) == (policies[topic].until, sources.get(topic))
    }
    known = {
        TopicPartition(topic, number): end
        for topic, bound in holding.items()
        for number, end in enumerate(bound.ends)
        if end != NO_END
    }
    over = {TopicPartition(topic, number) for topic, bound in holding.items() for number in bound.finished}
    over |= {place for place in reached if place.topic in holding}
    wanted: dict[TopicPartition, EndAt] = {}
    ahead, unapproved = set(), set()
    for place in (*found.copyable, *found.new):
        if place in known or place.topic not in policies:
            continue
        until = rule_of(link.topics, place.topic).until
        if until_text(until) != policies[place.topic].until:
            unapproved.add(place.topic)
        elif isinstance(until, Mapping):
            known[place] = until.get(place.partition, NO_END)
        elif isinstance(until, int) and until > now_ms:
            ahead.add(place.topic)
        elif until is not None:
            wanted[place] = EndAt(until)
    kept = (
        bound
        for topic, bound in recorded.items()
        if topic not in found.policies and until_text(rule_of(link.topics, topic).until) == bound.until
    )
    over = {place for place in over if place not in found.new}
    return Bounds(known, wanted, frozenset(ahead), frozenset(unapproved), frozenset(over), tuple(kept))


def bounded(found: Survey, bounds: Bounds, looked_up: Ends) -> Survey:
    """Return the survey with the ends in its policies. Partitions whose end is unknown, and those that have reached it, are
    not replicated."""
    ends = {**bounds.known, **looked_up.known}
    why: dict[tuple[str, Reason, str], list[int]] = defaultdict(list)
    out = set()
    for place in (*found.copyable, *found.new):
        until = found.policies[place.topic].until
        if not until or (place in ends and place not in bounds.over):
            continue
        out.add(place)
        if place in bounds.over:
            reason, detail = Reason.FINISHED, f"copied up to its `until`, {until}"
        elif place.topic in bounds.unapproved:
            reason, detail = Reason.AWAITING_APPROVAL, "its changed `until`"
        elif place.topic in bounds.ahead:
            reason, detail = Reason.UNTIL_AHEAD, f"`until` is {until}"
        else:
            reason, detail = Reason.SOURCE_LEADERLESS, looked_up.failures.get(place, "the end of its copy is unknown")
        why[place.topic, reason, detail].append(place.partition)
    waiting = [
        Waiting(topic=topic, partitions=tuple(sorted(numbers)), reason=reason, detail=detail)
        for (topic, reason, detail), numbers in sorted(why.items())
    ]
    of_topic: dict[str, dict[int, int]] = defaultdict(dict)
    for place, end in ends.items():
        of_topic[place.topic][place.partition] = end
    policies = {topic: _with_ends(policy, of_topic[topic]) for topic, policy in found.policies.items()}
    return replace(
        found,
        copyable=tuple(place for place in found.copyable if place not in out),
        new={place: request for place, request in found.new.items() if place not in out},
        waiting=(*found.waiting, *waiting),
        policies=policies,
        bounds=tuple(sorted([*bounds.kept, *_recorded(found, policies, bounds.over)], key=lambda bound: bound.topic)),
    )


def _recorded(
    found: Survey, policies: Mapping[str, TopicPolicy], over: Collection[TopicPartition]
) -> Iterator[TopicBound]:
    finished: dict[str, list[int]] = defaultdict(list)
    for place in sorted(over):
        finished[place.topic].append(place.partition)
    for pair in found.destinations.pairs:
        topic, policy = pair.source.topic, policies[pair.source.topic]
        if policy.until:
            yield TopicBound(
                topic=topic,
                source_id=pair.source.topic_id,
                until=policy.until,
                ends=policy.ends,
                finished=tuple(finished[topic]),
            )


def reached_ends(plans: Iterable[Plan], reports: Mapping[tuple[str, int], Iterable[Report]]) -> set[TopicPartition]:
    """Return the partitions that have reached the ends in these plans, by the slots that follow them."""
    found = set()
    for plan in plans:
        places = {
            (topic.source, number): slot
            for topic in plan.topics
            if topic.policy.ends
            for number, slot in enumerate(topic.slots)
        }
        for slot in {slot for slot in places.values() if slot is not None}:
            for report in reports.get((plan.group, slot), ()):
                if report.plan_version != plan.version:
                    continue
                found |= {
                    TopicPartition(item.topic, item.partition)
                    for item in report.partitions
                    if item.reason == Reason.FINISHED and places.get((item.topic, item.partition)) == slot
                }
    return found


def _with_ends(policy: TopicPolicy, ends: Mapping[int, int]) -> TopicPolicy:
    """``ends``: by partition."""
    if not policy.until:
        return policy
    by_number = tuple(ends.get(number, NO_END) for number in range(max(ends, default=-1) + 1))
    return policy.model_copy(update={"ends": by_number})
