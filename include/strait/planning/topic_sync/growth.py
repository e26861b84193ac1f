"""Partitions that copies lack. A copy follows its source up and never down: Kafka cannot take partitions away. Pure."""

from collections.abc import Collection, Iterable

from strait.config.links import Link
from strait.planning.topic_sync.actions import GrowTopic
from strait.planning.topics.pairs import Pair
from strait.planning.topics.policies import creates


def grown(link: Link, pairs: Iterable[Pair], refused: Collection[str]) -> tuple[GrowTopic, ...]:
    """What to grow, in order of the pairs: where the link may create topics, and the destination has not refused it."""
    return tuple(
        GrowTopic(pair.destination.topic, pair.source.topic, pair.destination.partitions, pair.source.partitions)
        for pair in pairs
        if pair.usable
        and pair.destination.partitions < pair.source.partitions
        and creates(link, pair.source.topic)
        and pair.destination.topic not in refused
    )
