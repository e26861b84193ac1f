"""Applies planned changes to topics and ACLs (`strait.planning.topic_sync.actions`), and gathers the facts that
planning needs for them."""

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from strait.config.links import Link
from strait.errors import ClusterError, ClusterUnavailable, NotAuthorized, StraitError
from strait.kafka.admin import Admin, ConfigChange, NewTopic, Outcomes
from strait.model import ClusterFacts, TopicPartition
from strait.planning.plan.planner import Proposal
from strait.planning.risks.risks import Risk, config_refused
from strait.planning.risks.state_safety import command
from strait.planning.topic_sync.actions import (
    Action,
    AllowAcl,
    AlterTopic,
    CreateHeartbeats,
    CreateTopic,
    DeleteTopic,
    GrowTopic,
    WithdrawAcl,
)
from strait.planning.topic_sync.configs import with_unaccepted_left, without_unaccepted
from strait.planning.topic_sync.retirement import Candidate, Evidence
from strait.planning.topic_sync.sync import TopicSync

_USABLE_SECONDS = 10.0
_LOOK_SECONDS = 0.1
_MOST_PAUSE_SECONDS = 2.0
_FEW = 100
"""Number of new partitions that the first request is about."""


_REQUESTS: Mapping[type[Action], Callable[[Admin, Sequence[Any]], Outcomes[Any, bool]]] = {
    CreateHeartbeats: lambda cluster, items: cluster.create_each(map(_new_topic, items)),
    CreateTopic: lambda cluster, items: cluster.create_each(map(_new_topic, items)),
    GrowTopic: lambda cluster, items: cluster.grow_each({item.topic: item.partitions for item in items}),
    AlterTopic: lambda cluster, items: cluster.alter_each({item.topic: _config_change(item) for item in items}),
    AllowAcl: lambda cluster, items: cluster.add_acls_each([item.acl for item in items]),
    WithdrawAcl: lambda cluster, items: cluster.remove_acls_each([item.acl for item in items]),
    DeleteTopic: lambda cluster, items: cluster.delete_each([item.topic for item in items]),
}
"""Requests for all actions of one kind; True: done here, False: another process was faster."""


@dataclass(frozen=True, slots=True)
class Done:
    """The changes to topics and ACLs that were made here, in order.

    Attributes:
        ``refused``: topic -> why its cluster rejected changes to it.
    """

    actions: tuple[Action, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


def with_acls(admin: Admin, facts: ClusterFacts) -> ClusterFacts:
    """Return the facts with the cluster's ACLs on topics. If the cluster does not list them, everything else
    continues."""
    try:
        return replace(facts, acls=admin.acls())
    except ClusterUnavailable:
        raise
    except ClusterError as error:
        return replace(facts, acls_denied=error.message)


def acceptable(destination: Admin, link: Link, create: Collection[CreateTopic]) -> tuple[CreateTopic, ...]:
    """Return the topics to create, without configurations that the destination rejects; a rejection for another reason
    appears at the creation.

    Raises:
        ClusterUnavailable: the cluster does not answer.
    """
    wanted = {action.topic: action for action in create}
    asked = dict(wanted)
    while asked:
        refused = destination.create_each(map(_new_topic, asked.values()), only_asked=True).failures
        lessened = {topic: without_unaccepted(link, asked[topic], str(error)) for topic, error in refused.items()}
        asked = {topic: action for topic, action in lessened.items() if action is not None}
        wanted |= asked
    return tuple(wanted.values())


def acceptable_changes(destination: Admin, link: Link, sync: TopicSync) -> tuple[TopicSync, tuple[Risk, ...]]:
    """Return the changes without configurations that the destination rejects, and a risk for each of these and for each
    other rejection: a destination topic that never gets a configuration is named at every plan.

    Raises:
        ClusterUnavailable: the cluster does not answer.
    """
    wanted = {action.topic: action for action in sync.actions if isinstance(action, AlterTopic)}
    asked, risks = dict(wanted), []
    while asked:
        refused = destination.alter_each(
            {topic: _config_change(action) for topic, action in asked.items()}, only_asked=True
        ).failures
        lessened = {}
        for topic, error in refused.items():
            action = with_unaccepted_left(link, asked[topic], str(error))
            risks.append(config_refused(asked[topic].source, topic, str(error)))
            if action is not None:
                wanted[topic] = lessened[topic] = action
        asked = {topic: action for topic, action in lessened.items() if action.put or action.reset}
    actions = (wanted[one.topic] if isinstance(one, AlterTopic) else one for one in sync.actions)
    left = tuple(one for one in actions if not isinstance(one, AlterTopic) or one.put or one.reset)
    return replace(sync, actions=left), tuple(sorted(risks))


def gather(source: Admin, destination: Admin, candidates: Collection[Candidate]) -> Evidence:
    """Query the facts that the decision on each candidate needs.

    Raises:
        ClusterUnavailable: a cluster does not answer.
    """
    if not candidates:
        return Evidence()
    partitions = [partition for candidate in candidates for partition in candidate.partitions]
    first = destination.offsets_each(partitions, "earliest").results
    end = destination.offsets_each(partitions, "end").results
    return Evidence(
        gone=source.absent([candidate.source for candidate in candidates]),
        copies_gone=destination.absent([one.destination for one in candidates if one.copy is None]),
        logs={partition: (first[partition], end[partition]) for partition in first.keys() & end.keys()},
    )


def perform(source: Admin, destination: Admin, proposal: Proposal) -> Done:
    """Perform all proposed actions. If a cluster rejects an action on one topic, other topics are unaffected.

    If a cluster becomes unavailable meanwhile, the remaining actions count as rejected with that cause: completed
    actions must be in the plan.

    Raises:
        ClusterUnavailable: a cluster has not answered at all.
    """
    done: list[Action] = []
    refused: dict[str, list[str]] = {}
    for kind, of_kind in groupby(proposal.actions, type):
        actions = list(of_kind)
        cluster = source if kind is CreateHeartbeats else destination
        try:
            outcomes = _REQUESTS[kind](cluster, actions)
        except ClusterUnavailable as away:
            if not done:
                raise
            outcomes = Outcomes({}, dict.fromkeys((action.key for action in actions), away))
        there = [action for action in actions if action.key in outcomes.results]
        done += [action for action in there if outcomes.results[action.key]]
        unserved = until_usable(cluster, [partition for action in there for partition in action.new_partitions])
        for topic in sorted({partition.topic for partition in unserved}):
            refused.setdefault(topic, []).append("its brokers do not serve what was created")
        for action in actions:
            if error := outcomes.failures.get(action.key):
                refused.setdefault(action.subject, []).append(str(error))
    if proposal.sync.acls_denied:
        refused.setdefault("ACLs", []).append(proposal.sync.acls_denied)
    return Done(tuple(done), {topic: "; ".join(whys) for topic, whys in refused.items()})


def _new_topic(action: CreateTopic) -> NewTopic:
    return NewTopic(action.topic, action.partitions, action.replication_factor, dict(action.configs))


def _config_change(action: AlterTopic) -> ConfigChange:
    return ConfigChange(dict(action.put), action.reset)


def harden_state_topics(destination: Admin, changes: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Set configurations of state topics so that they lose no record and stay small. A hosted cluster may reject some;
    if it rejects all of a topic's together, each is set separately. Return the topics with configurations that the
    destination rejects, with the cause and the command for an operator.

    Raises:
        ClusterUnavailable: the destination does not answer.
    """
    together = destination.alter_each({topic: ConfigChange(put) for topic, put in changes.items()}).failures
    refused: dict[str, str] = {}
    for topic, error in together.items():
        causes = _refused(destination, topic, changes[topic], error)
        if causes:
            cause = "; ".join(dict.fromkeys(one.message for one in causes.values()))
            refused[topic] = f"{cause}; run {command(topic, {name: changes[topic][name] for name in causes})}"
    return refused


def _refused(destination: Admin, topic: str, put: Mapping[str, str], error: StraitError) -> dict[str, StraitError]:
    """Return the topic's configurations that are rejected when each is set separately, and why.

    Args:
        error: of all of them together.
    """
    if isinstance(error, NotAuthorized):
        return dict.fromkeys(put, error)
    found: dict[str, StraitError] = {}
    for name, value in put.items():
        failures = destination.alter_each({topic: ConfigChange({name: value})}).failures
        if topic in failures:
            found[name] = failures[topic]
    return found


def until_usable(cluster: Admin, partitions: Collection[TopicPartition]) -> Collection[TopicPartition]:
    """Wait until the brokers serve new partitions, which exist before every broker knows them and they have leaders;
    give up 10 s after the last partition became usable. Return those that are not served.

    Brokers need minutes for thousands of partitions, and answering for all of them takes seconds: each request is about a few, and
    about twice as many as the last one if all of those were usable, or none.
    """
    left, several = deque(dict.fromkeys(partitions)), _FEW
    deadline = time.monotonic() + _USABLE_SECONDS
    while left and time.monotonic() < deadline:
        asked = [left.popleft() for _ in range(min(several, len(left)))]
        usable = _usable(cluster, asked)
        unusable = [place for place in asked if place not in usable]
        left.extend(unusable)  # others may be usable earlier
        if usable:
            deadline = time.monotonic() + _USABLE_SECONDS
        if unusable:
            time.sleep(min(_MOST_PAUSE_SECONDS, _LOOK_SECONDS * max(1.0, len(asked) / _FEW)))
        several = _FEW if usable and unusable else 2 * several
    return set(left)


def _usable(cluster: Admin, partitions: Collection[TopicPartition]) -> Set[TopicPartition]:
    try:
        counts = cluster.partition_counts()
        known = [place for place in partitions if place.partition < counts.get(place.topic, 0)]
        return cluster.offsets_each(known, "end").results.keys()
    except ClusterUnavailable:
        return set()
