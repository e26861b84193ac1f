"""Plain facts about clusters: what was observed, without any decision in it."""

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
        topic_id: Kafka's UUID (KIP-516) in its usual text form, "" where the cluster has none; a topic deleted and
            created again has another one.
        configs: values in force, only of what the planner asks for.
        topic_configs: what is set on this very topic.
        cluster_configs: what is set for all topics of the cluster while it runs, and not on this one.
        replicas: of its first partition; 0 where not known.
        denied: why its cluster does not tell more of it to this principal; "" where it does. ``configs`` are then those
            that the plan in force goes by, or none.
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
        """Nothing is known that copying could go by."""
        return bool(self.denied) and not self.configs


class TopicAcl(NamedTuple):
    """One rule of a cluster's authorizer about topics, in Kafka's words. ``pattern``: LITERAL or PREFIXED."""

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
        name: in the links file; ``cluster_id`` is Kafka's own id.
        acls: rules about topics; None: not asked for, or not told, and then ``acls_denied`` says why.
    """

    name: str
    cluster_id: str
    topics: Mapping[str, TopicFacts]
    acls: frozenset[TopicAcl] | None = None
    acls_denied: str = ""


NO_TOPIC_ID = bytes(16)
"""That of a topic whose cluster gives none: its brokers are older, or their `inter.broker.protocol.version` is."""


def is_known_id(topic_id: str) -> bool:
    """Whether it is a topic's ID, in Kafka's text form, and not that of a topic without one."""
    return bool(topic_id.strip("A"))


def topic_id_bytes(topic_id: str) -> bytes:
    """A topic id as it is on the wire, 16 bytes, from Kafka's text form (URL-safe base64 without padding)."""
    return base64.urlsafe_b64decode(topic_id + "==")


def topic_id_text(topic_id: bytes) -> str:
    """Kafka's text form of a topic id."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")


def spans(partitions: Iterable[TopicPartition]) -> Iterator[str]:
    """Partitions in few words, by topic: ``orders 0-5, 8``. ``partitions`` are in order."""
    for topic, of_topic in groupby(partitions, key=lambda partition: partition.topic):
        yield f"{topic} {ranges(partition.partition for partition in of_topic)}"


def ranges(numbers: Iterable[int]) -> str:
    """Numbers in few words: ``0-5, 8``. They are in order."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
