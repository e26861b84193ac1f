"""Members of share groups (KIP-932): Kafka's own consumer, in a JVM that this process talks to."""

from typing import Any

from strait.embedded.kafka import Cluster
from support.fixtures.waiting import eventually
from support.kafka.jvm import java_map


class ShareReader:
    """One member: the offsets of what it has read and acknowledged, of a topic of one partition."""

    def __init__(self, jvm: Any, cluster: Cluster, group: str, topic: str) -> None:
        bytes_of = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
        settings = {
            "group.id": group,
            "key.deserializer": bytes_of,
            "value.deserializer": bytes_of,
            "max.poll.records": "10",
            "share.acquire.mode": "record_limit",
        }
        self._jvm = jvm
        self._consumer = jvm.org.apache.kafka.clients.consumer.KafkaShareConsumer(
            java_map(jvm, dict(cluster.client_properties) | settings)
        )
        self._consumer.subscribe([topic])
        self.offsets: list[int] = []

    def read(self, records: int) -> list[int]:
        """At least so many more, all acknowledged."""
        until = len(self.offsets) + records

        def enough() -> bool:
            records = self._consumer.poll(self._jvm.java.time.Duration.ofMillis(300)).iterator()
            while records.hasNext():
                self.offsets.append(records.next().offset())
            self._consumer.commitSync()
            return len(self.offsets) >= until

        eventually(enough, what=lambda: f"{until} records come, so far {len(self.offsets)}")
        return self.offsets

    def leave(self) -> None:
        self._consumer.close()
