"""Members of consumer groups: Kafka's own Java consumer, of either protocol, in a JVM that this process talks to."""

import json
import threading
from typing import Any

from strait.embedded.kafka import Cluster
from support.fixtures.waiting import eventually
from support.kafka.jvm import java_map

_STRINGS = "org.apache.kafka.common.serialization.StringDeserializer"


class JavaReader:
    """What `support.kafka.groups.Reader` does with librdkafka: what it has processed, by key and by value."""

    def __init__(self, jvm: Any, cluster: Cluster, group: str, topic: str, protocol: str = "classic") -> None:
        self._jvm = jvm
        self._json = _json_of_records(jvm)
        settings = {
            "group.id": group,
            "client.id": "java",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",
            "max.poll.records": "50",
            "key.deserializer": _STRINGS,
            "value.deserializer": _STRINGS,
        } | ({"session.timeout.ms": "6000"} if protocol == "classic" else {})
        self._consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(
            java_map(jvm, dict(cluster.client_properties) | settings)
        )
        self._consumer.subscribe([topic])
        self.keys: list[bytes] = []
        self.values: list[bytes] = []

    def take(self) -> None:
        """Process what comes within a moment."""
        found = self._consumer.poll(self._jvm.java.time.Duration.ofMillis(200))
        for place in found.partitions():
            for record in json.loads(self._json.writeValueAsString(found.records(place))):
                self.keys.append((record["key"] or "").encode())
                self.values.append((record["value"] or "").encode())

    def read(self, records: int) -> list[bytes]:
        """At least so many records more."""
        until = len(self.keys) + records

        def enough() -> bool:
            self.take()
            return len(self.keys) >= until

        eventually(enough, what=lambda: f"{until} records come, so far {len(self.keys)}")
        return self.keys

    def work(self, stopped: threading.Event) -> None:
        """Read and commit until told to stop, then leave."""
        while not stopped.is_set():
            self.take()
            self.commit()
        self.leave()

    def commit(self) -> None:
        """What was processed."""
        self._consumer.commitSync()

    def leave(self) -> None:
        """Commit what was processed, and go."""
        self.commit()
        self._consumer.close()


def _json_of_records(jvm: Any) -> Any:
    """Writes a list of records by one call, instead of several for each record. Records have no getters."""
    jackson = jvm.com.fasterxml.jackson
    mapper = jackson.databind.ObjectMapper()
    mapper.registerModule(jackson.datatype.jdk8.Jdk8Module())
    mapper.setVisibility(
        jackson.annotation.PropertyAccessor.FIELD, getattr(jackson.annotation, "JsonAutoDetect$Visibility").ANY
    )
    return mapper
