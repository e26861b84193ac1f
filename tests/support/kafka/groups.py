"""Consumers of a group, and its committed offsets."""

import threading
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place

from strait.embedded.kafka import Cluster
from strait.model import TopicPartition
from strait.net.consumer_groups import ConsumerGroups
from support.fixtures.waiting import eventually


class Reader:
    """A member of a group: what it has read, by key and by value."""

    def __init__(
        self,
        cluster: Cluster,
        group: str,
        topic: str,
        protocol: str = "classic",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """``properties``: another way to the cluster."""
        self._consumer = Consumer(
            dict(properties or cluster.client_properties)
            | {
                "group.id": group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
            | ({"session.timeout.ms": 6_000} if protocol == "classic" else {})
        )
        self._consumer.subscribe([topic])
        self.keys: list[bytes] = []
        self.values: list[bytes] = []

    def read(self, records: int) -> list[bytes]:
        """So many records more."""
        until = len(self.keys) + records

        def enough() -> bool:
            while len(self.keys) < until and (message := self._consumer.poll(0.1)) is not None:
                if message.error() is None:
                    self.keys.append(message.key() or b"")
                    self.values.append(message.value() or b"")
            return len(self.keys) >= until

        eventually(enough, what=lambda: f"{until} records come, so far {len(self.keys)}")
        return self.keys

    def take(self) -> None:
        """Process what comes within a moment, some records at most."""
        for message in self._consumer.consume(50, timeout=0.2):
            if message.error() is None:
                self.keys.append(message.key() or b"")
                self.values.append(message.value() or b"")

    def work(self, stopped: threading.Event) -> None:
        """Read and commit until told to stop, then leave."""
        while not stopped.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.keys.append(message.key() or b"")
                if len(self.keys) % 50 == 0:
                    self._commit(KafkaError._NO_OFFSET, KafkaError._WAIT_COORD)  # the next one has it, too
        self.leave()

    def commit(self) -> None:
        """What was read; nothing, where that was committed already."""
        self._commit(KafkaError._NO_OFFSET)

    def _commit(self, *accepted: int) -> None:
        try:
            self._consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() not in accepted:
                raise

    def leave(self) -> None:
        """Commit what was read, and go."""
        self.commit()
        self._consumer.close()


def commit(cluster: Cluster, group: str, offsets: dict[TopicPartition, int]) -> None:
    """As a client without membership does."""
    consumer = Consumer(cluster.client_properties | {"group.id": group})
    places = [Place(*place, offset) for place, offset in offsets.items()]
    eventually(lambda: consumer.commit(offsets=places, asynchronous=False), what="the offsets are committed")
    consumer.close()


def committed(cluster: Cluster, group: str, topic: str) -> dict[int, int]:
    """On that cluster, by partition."""
    with ConsumerGroups(cluster.client_properties, "it") as groups:
        found = groups.committed([group])[group]
    assert not isinstance(found, int)
    return {place.partition: item.offset for place, item in found.items() if place.topic == topic}
