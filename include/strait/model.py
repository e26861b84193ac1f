"""Observed facts about clusters, without any decision based on them."""

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple


class TopicPartition(NamedTuple):
    """One partition of one topic. Sorts by topic name, then numerically by partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One topic as its cluster describes it.

    Attributes:
        topic_id: Kafka's UUID (KIP-516) in its usual text form, "" if the cluster has none. A recreated topic has
            another ID.
        configs: effective values, only of the configurations that the planner asks for.
        topic_configs: configurations set on the topic itself.
        cluster_configs: dynamic broker configurations that apply to the topic and are not set on the topic itself.
        replicas: number of replicas of its first partition; 0 if unknown.
        denied: error with which the cluster denied a description of the topic to this principal; "" if it did not.
            ``configs`` are then the values that the current plan is based on, or empty.
    """

    topic: str
    topic_id: str
    partitions: int
    internal: bool = False
    configs: Mapping[str, str] = field(default_factory=dict)
    topic_configs: Mapping[str, str] = field(default_factory=dict)
    cluster_configs: Mapping[str, str] = field(default_factory=dict)
    replicas: int = 0
    denied: str = ""

    @property
    def unknown(self) -> bool:
        """Whether no configuration is known that copying could be based on."""
        return bool(self.denied) and not self.configs


class TopicAcl(NamedTuple):
    """One topic ACL of a cluster's authorizer, in Kafka's terms. ``pattern``: LITERAL or PREFIXED."""

    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str

    def __str__(self) -> str:
        which = f"topics {self.name}*" if self.pattern == "PREFIXED" else f"topic {self.name}"
        host = "" if self.host == "*" else f" from {self.host}"
        return f"{self.permission} {self.operation} on {which} to {self.principal}{host}"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """One cluster at one moment.

    Attributes:
        name: name in the links file; ``cluster_id`` is Kafka's cluster ID.
        acls: topic ACLs; None: not requested, or denied, in which case ``acls_denied`` has the error.
    """

    name: str
    cluster_id: str
    topics: Mapping[str, TopicFacts]
    acls: frozenset[TopicAcl] | None = None
    acls_denied: str = ""


NO_TOPIC_ID = bytes(16)
"""ID of a topic in a cluster without topic IDs: its brokers or their `inter.broker.protocol.version` are too old."""


def is_known_id(topic_id: str) -> bool:
    """Whether the text is a topic ID in Kafka's text form, other than the all-zero ID of a topic without one."""
    return bool(topic_id.strip("A"))


def topic_id_bytes(topic_id: str) -> bytes:
    """Convert a topic ID from Kafka's text form (URL-safe base64 without padding) to the 16 bytes of the protocol."""
    return base64.urlsafe_b64decode(topic_id + "==")


def topic_id_text(topic_id: bytes) -> str:
    """Return Kafka's text form of a topic ID."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def spans(partitions: Iterable[TopicPartition]) -> Iterator[str]:
    """Yield a short text for each topic's partitions: ``orders 0-5, 8``. ``partitions`` must be sorted."""
    for topic, of_topic in groupby(partitions, key=lambda partition: partition.topic):
        yield f"{topic} {ranges(partition.partition for partition in of_topic)}"


def ranges(numbers: Iterable[int]) -> str:
    """Return a short text for sorted numbers: ``0-5, 8``."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
