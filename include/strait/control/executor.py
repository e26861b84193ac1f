"""Does what copies need, as `strait.planning.topic_sync.sync` has decided, and finds out what it has to know for
that."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from strait.control.creation import wait_until_usable
from strait.errors import ClusterError, ClusterUnavailable
from strait.kafka.admin import Admin, ConfigChange, Outcomes
from strait.model import ClusterFacts, TopicAcl, TopicPartition
from strait.planning.risks.state_safety import command
from strait.planning.topic_sync.acls import AclChanges
from strait.planning.topic_sync.growth import GrowTopic
from strait.planning.topic_sync.retirement import Candidate, Evidence
from strait.planning.topic_sync.sync import Upkeep

Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class Done:
    """What was done to copies.

    Attributes:
        lines: one for each thing that was done, for people.
        refused: destination topic -> what the destination refused to do to it, and why.
        acls: rules that were added and removed.
    """

    lines: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    acls: AclChanges = field(default_factory=AclChanges)


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


def perform(destination: Admin, upkeep: Upkeep) -> Done:
    """Do all of it. What the destination refuses for one topic stops no other.

    Raises:
        ClusterUnavailable: the destination does not answer, or does not serve the partitions that it has added.
    """
    refused: dict[str, list[str]] = {}
    lines = [*_grow(destination, upkeep, refused), *_alter(destination, upkeep, refused)]
    acls = AclChanges(
        _succeeded(destination.add_acls_each(upkeep.acls.add), refused),
        _succeeded(destination.remove_acls_each(upkeep.acls.remove), refused),
    )
    lines += [f"allowed   {acl}" for acl in acls.add] + [f"withdrew  {acl}" for acl in acls.remove]
    lines += _delete(destination, upkeep, refused)
    if upkeep.acls_denied:
        refused.setdefault("ACLs", []).append(upkeep.acls_denied)
    return Done(tuple(lines), {topic: "; ".join(whys) for topic, whys in refused.items()}, acls)


def make_state_safer(destination: Admin, changes: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Set configurations of state topics so that they lose no record. Returns the topics that the destination refuses
    to alter, with the cause and the command for an operator.

    Raises:
        ClusterUnavailable: the destination does not answer.
    """
    failures = destination.alter_each({topic: ConfigChange(put) for topic, put in changes.items()}).failures
    return {topic: f"{error.message}; run {command(topic, changes[topic])}" for topic, error in failures.items()}


def _grow(destination: Admin, upkeep: Upkeep, refused: dict[str, list[str]]) -> Iterator[str]:
    wanted = {item.topic: item for item in upkeep.grow}
    grown = _succeeded(destination.grow_each({topic: item.partitions for topic, item in wanted.items()}), refused)
    wait_until_usable(destination, [partition for topic in grown for partition in _added(wanted[topic])])
    for topic in grown:
        yield f"grew      {topic} from {wanted[topic].partitions_now} to {wanted[topic].partitions} partitions"


def _alter(destination: Admin, upkeep: Upkeep, refused: dict[str, list[str]]) -> Iterator[str]:
    changes = {item.topic: ConfigChange(dict(item.put), item.reset) for item in upkeep.alter}
    for topic in _succeeded(destination.alter_each(changes), refused):
        put = [f"{name}={value}" for name, value in changes[topic].put.items()]
        yield f"altered   {topic}: {', '.join([*put, *(f'{name} by default' for name in changes[topic].reset)])}"


def _delete(destination: Admin, upkeep: Upkeep, refused: dict[str, list[str]]) -> Iterator[str]:
    wanted = {item.topic: item for item in upkeep.delete}
    for topic in _succeeded(destination.delete_each(wanted.keys()), refused):
        yield f"deleted   {topic}, since the source has no {wanted[topic].source} any more"


def _succeeded(found: Outcomes[Thing, bool], refused: dict[str, list[str]]) -> tuple[Thing, ...]:
    """What was done here, and not by another control plane that was faster; what was refused is noted."""
    for thing, error in found.failures.items():
        topic = thing.name if isinstance(thing, TopicAcl) else str(thing)
        refused.setdefault(topic, []).append(error.message)
    return tuple(thing for thing, here in found.results.items() if here)


def _added(item: GrowTopic) -> list[TopicPartition]:
    return [TopicPartition(item.topic, number) for number in range(item.partitions_now, item.partitions)]
