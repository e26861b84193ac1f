"""Creating destination topics, and waiting until what was created can be used."""

import time
from collections.abc import Collection, Mapping

from strait.errors import ClusterUnavailable
from strait.kafka.admin import Admin, NewTopic
from strait.model import TopicPartition
from strait.planning.topic_sync.creation import CreateTopic

_USABLE_SECONDS = 10.0


def create_topics(destination: Admin, wanted: Collection[CreateTopic]) -> tuple[list[str], dict[str, str]]:
    """Create topics; return the names of those created here, and why others were refused.

    Raises:
        ClusterUnavailable: the cluster does not answer, or does not serve what it has created.
    """
    if not wanted:
        return [], {}
    topics = [NewTopic(item.topic, item.partitions, item.replication_factor, dict(item.configs)) for item in wanted]
    done = destination.create_each(topics)
    made = [item for item in topics if item.topic in done.results]
    wait_until_usable(destination, [TopicPartition(item.topic, n) for item in made for n in range(item.partitions)])
    created = sorted(topic for topic, here in done.results.items() if here)
    return created, {topic: error.message for topic, error in done.failures.items()}


def wait_until_usable(destination: Admin, partitions: Collection[TopicPartition]) -> None:
    """Partitions are created before every broker knows of them and they have leaders.

    Raises:
        ClusterUnavailable: the cluster does not serve them.
    """
    if not partitions:
        return
    deadline = time.monotonic() + _USABLE_SECONDS
    highest = {partition.topic: partition.partition for partition in sorted(partitions)}
    while not _usable(destination, partitions, highest):
        if time.monotonic() > deadline:
            raise ClusterUnavailable(
                destination.cluster, f"its brokers do not serve what was created on it: {', '.join(highest)}"
            )
        time.sleep(0.1)


def _usable(destination: Admin, partitions: Collection[TopicPartition], highest: Mapping[str, int]) -> bool:
    facts = destination.observe(lambda _: False).topics
    known = all(topic in facts and facts[topic].partitions > number for topic, number in highest.items())
    return known and not destination.offsets_each(partitions, "end").failures
