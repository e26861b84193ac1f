"""The topics of a benchmark on one cluster: make, count, remove."""

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec

from mm2.workloads import PARTITIONS
from strait.errors import ClusterUnavailable
from strait.kafka.clients import Watch, ask, make_admin

_TIMEOUT_SECONDS = 60.0
_BETWEEN_LOOKS_SECONDS = 0.1


class Topics:
    """``cluster`` is the cluster's name in errors; topics get ``replicas`` of each partition."""

    def __init__(self, cluster: str, properties: Mapping[str, str], replicas: int = 1) -> None:
        self._cluster = cluster
        self._replicas = replicas
        self._watch = Watch(cluster)
        self._admin = make_admin(properties, self._watch)

    def create(self, topic: str) -> None:
        """Create it and wait until each partition has a leader."""
        new = NewTopic(topic, num_partitions=PARTITIONS, replication_factor=self._replicas)
        created = self._admin.create_topics([new])[topic]
        self._finish(f"creating topic {topic}", created)
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while not self._has_leaders(topic):
            if time.monotonic() > deadline:
                raise ClusterUnavailable(self._cluster, f"creating topic {topic}: its partitions have no leaders")
            time.sleep(_BETWEEN_LOOKS_SECONDS)

    def count(self, topic: str) -> int:
        """How many records were ever written to it, all partitions together."""
        return ask(self._watch, f"counting topic {topic}", _TIMEOUT_SECONDS, lambda _: self._count(topic))

    def names(self) -> set[str]:
        listed = ask(
            self._watch, "listing topics", _TIMEOUT_SECONDS, lambda seconds: self._admin.list_topics(timeout=seconds)
        )
        return set(listed.topics)

    def delete(self, topics: Iterable[str]) -> None:
        """Delete those of them that exist, and wait until they are gone."""
        doomed = self.names() & set(topics)
        if not doomed:
            return
        for topic, deleted in self._admin.delete_topics(sorted(doomed)).items():
            self._finish(f"deleting topic {topic}", deleted)
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while left := self.names() & doomed:
            if time.monotonic() > deadline:
                raise ClusterUnavailable(self._cluster, f"deleting topics: {sorted(left)} are still there")
            time.sleep(_BETWEEN_LOOKS_SECONDS)

    def _has_leaders(self, topic: str) -> bool:
        try:
            return self._count(topic) == 0
        except KafkaException:
            return False  # it has several errors for a topic that is not known everywhere yet

    def _finish(self, doing: str, future: Future[None]) -> None:
        ask(self._watch, doing, _TIMEOUT_SECONDS, lambda _: future.result(_TIMEOUT_SECONDS))

    def _count(self, topic: str) -> int:
        # Asks for its metadata by name: librdkafka remembers "unknown", and leaders that are no more, and would not ask
        # again just to count.
        self._admin.list_topics(topic, timeout=_TIMEOUT_SECONDS)
        latest = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(PARTITIONS)}
        return sum(answer.result().offset for answer in self._admin.list_offsets(latest).values())
