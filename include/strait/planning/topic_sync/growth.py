"""Partitions that destination topics lack. Partitions are only added: Kafka cannot remove them. Pure."""

from collections.abc import Collection, Iterable

from strait.config.links import Link
from strait.planning.topic_sync.actions import GrowTopic
from strait.planning.topics.pairs import Pair
from strait.planning.topics.policies import creates


def grown(link: Link, pairs: Iterable[Pair], refused: Collection[str]) -> tuple[GrowTopic, ...]:
    """Return the destination topics to grow, in order of the pairs: if the link may create topics, and the destination
    has not rejected a change to the topic (``refused``)."""
    return tuple(
        GrowTopic(pair.destination.topic, pair.source.topic, pair.destination.partitions, pair.source.partitions)
        for pair in pairs
        if pair.usable
        and pair.destination.partitions < pair.source.partitions
        and creates(link, pair.source.topic)
        and pair.destination.topic not in refused
    )
