"""Does to topics and rights what was planned (`strait.planning.topic_sync.actions`), and finds out what planning has to
know for that."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from strait.errors import ClusterError, ClusterUnavailable
from strait.kafka.admin import Admin, ConfigChange, NewTopic, Outcomes
from strait.model import ClusterFacts, TopicPartition
from strait.planning.plan.planner import Proposal
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
from strait.planning.topic_sync.retirement import Candidate, Evidence

_USABLE_SECONDS = 10.0


_REQUESTS: Mapping[type[Action], Callable[[Admin, Sequence[Any]], Outcomes[Any, bool]]] = {
    CreateHeartbeats: lambda cluster, items: cluster.create_each(map(_new_topic, items)),
    CreateTopic: lambda cluster, items: cluster.create_each(map(_new_topic, items)),
    GrowTopic: lambda cluster, items: cluster.grow_each({item.topic: item.partitions for item in items}),
    AlterTopic: lambda cluster, items: cluster.alter_each({item.topic: _config_change(item) for item in items}),
    AllowAcl: lambda cluster, items: cluster.add_acls_each([item.acl for item in items]),
    WithdrawAcl: lambda cluster, items: cluster.remove_acls_each([item.acl for item in items]),
    DeleteTopic: lambda cluster, items: cluster.delete_each([item.topic for item in items]),
}
"""How a cluster is asked to do all actions of one kind; True: done here, False: somebody else was faster."""


@dataclass(frozen=True, slots=True)
class Done:
    """What was done to topics and rights here, in order.

    Attributes:
        refused: topic -> what its cluster refused to do to it, and why.
    """

    actions: tuple[Action, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


def with_acls(admin: Admin, facts: ClusterFacts) -> ClusterFacts:
    """The facts with the cluster's rules about topics. That it does not tell them stops nothing else."""
    try:
        return replace(facts, acls=admin.acls())
    except ClusterUnavailable:
        raise
    except ClusterError as error:
        return replace(facts, acls_denied=error.message)


def gather(source: Admin, destination: Admin, candidates: Collection[Candidate]) -> Evidence:
    """Ask for what decides about each candidate.

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
    """Do all that is proposed. What a cluster refuses for one topic stops no other.

    Raises:
        ClusterUnavailable: a cluster does not answer, or does not serve the partitions that it has added.
    """
    done: list[Action] = []
    refused: dict[str, list[str]] = {}
    for kind, of_kind in groupby(proposal.actions, type):
        actions = list(of_kind)
        cluster = source if kind is CreateHeartbeats else destination
        outcomes = _REQUESTS[kind](cluster, actions)
        there = [action for action in actions if action.key in outcomes.results]
        wait_until_usable(cluster, [partition for action in there for partition in action.new_partitions])
        done += [action for action in there if outcomes.results[action.key]]
        for action in actions:
            if error := outcomes.failures.get(action.key):
                refused.setdefault(action.subject, []).append(error.message)
    if proposal.sync.acls_denied:
        refused.setdefault("ACLs", []).append(proposal.sync.acls_denied)
    return Done(tuple(done), {topic: "; ".join(whys) for topic, whys in refused.items()})


def _new_topic(action: CreateTopic) -> NewTopic:
    return NewTopic(action.topic, action.partitions, action.replication_factor, dict(action.configs))


def _config_change(action: AlterTopic) -> ConfigChange:
    return ConfigChange(dict(action.put), action.reset)


def make_state_safer(destination: Admin, changes: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Set configurations of state topics so that they lose no record and stay small. Returns the topics that the destination refuses
    to alter, with the cause and the command for an operator.

    Raises:
        ClusterUnavailable: the destination does not answer.
    """
    failures = destination.alter_each({topic: ConfigChange(put) for topic, put in changes.items()}).failures
    return {topic: f"{error.message}; run {command(topic, changes[topic])}" for topic, error in failures.items()}


def wait_until_usable(cluster: Admin, partitions: Collection[TopicPartition]) -> None:
    """Partitions are created before every broker knows of them and they have leaders.

    Raises:
        ClusterUnavailable: the cluster does not serve them.
    """
    if not partitions:
        return
    deadline = time.monotonic() + _USABLE_SECONDS
    highest = {partition.topic: partition.partition for partition in sorted(partitions)}
    while not _usable(cluster, partitions, highest):
        if time.monotonic() > deadline:
            raise ClusterUnavailable(
                cluster.cluster, f"its brokers do not serve what was created on it: {', '.join(highest)}"
            )
        time.sleep(0.1)


def _usable(cluster: Admin, partitions: Collection[TopicPartition], highest: Mapping[str, int]) -> bool:
    facts = cluster.observe(lambda _: False).topics
    known = all(topic in facts and facts[topic].partitions > number for topic, number in highest.items())
    return known and not cluster.offsets_each(partitions, "end").failures
