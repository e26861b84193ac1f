"""Plain facts about clusters: what was observed, without any decision in it."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID


class TopicPartition(NamedTuple):
    """One partition of one topic. Sorts by topic name, then numerically by partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One topic as its cluster describes it.

    ``topic_id``: Kafka's UUID (KIP-516) in its usual text form, "" where the cluster has none; a topic deleted
    and created again has another one. ``configs``: only what the planner asks for, as strings.
    """

    topic: str
    topic_id: str
    partitions: int
    internal: bool = False
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """One cluster at one moment. ``name`` is its name in the links file, ``cluster_id`` Kafka's own id."""

    name: str
    cluster_id: str
    topics: Mapping[str, TopicFacts]


def topic_uuid(topic_id: str) -> UUID:
    """The UUID behind Kafka's text form of a topic id (URL-safe base64 without padding)."""
    return UUID(bytes=base64.urlsafe_b64decode(topic_id + "=="))


def topic_id_text(topic_id: UUID) -> str:
    """Kafka's text form of a topic id."""
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
