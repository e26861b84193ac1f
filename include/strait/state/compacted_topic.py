"""A compacted topic with one partition to which other clients may write too: the newest value of each key, and writing
values that differ."""

import time
from collections.abc import Mapping

from confluent_kafka import KafkaError, Message

from strait.errors import ClusterUnavailable, StraitError
from strait.kafka.admin import Admin, NewTopic
from strait.kafka.clients import Watch, make_producer
from strait.kafka.reading import read_topic
from strait.kafka.verified import identify
from strait.state.segments import COMPACTED

_SECONDS = 15.0
_READ_SECONDS = 60.0
"""Interval at which new records are read: another client may have written to the topic."""


class CompactedTopic:
    """The topic is created if it is missing, with the brokers' default replication factor.

    Raises (every method): ClusterUnavailable, NotAuthorized, and ClusterError if the cluster rejects a request.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str, topic: str) -> None:
        self._properties = properties
        self._topic = topic
        self._watch = Watch(cluster)
        admin = Admin(properties, cluster)
        if topic not in admin.observe(topic.__eq__, ()).topics:
            admin.create([NewTopic(topic, 1, None, {"cleanup.policy": "compact", **COMPACTED})])
        self._values: dict[bytes, bytes | None] = {}
        self._next = 0
        self._read_at = 0.0
        self._producer = make_producer(
            properties,
            self._watch,
            client_id="strait-state",
            compression_type="zstd",
            linger_ms=5,
            max_in_flight=1,  # keeps the order, so the later value of a key stays
            message_timeout_ms=int(_SECONDS * 1000),
        )

    def read_on(self) -> bool:
        """Read the records of other clients, at most once in 60 s; return whether any value is new."""
        if time.monotonic() < self._read_at:
            return False
        changed = False
        for message in read_topic(self._properties, self._watch.cluster, self._topic, first=self._next):
            key, value = message.key(), message.value()
            changed |= key is not None and self._values.get(key) != value
            if key is not None:
                self._values[key] = value
            self._next = (message.offset() or 0) + 1
        self._read_at = time.monotonic() + _READ_SECONDS
        return changed

    def write(self, wanted: Mapping[bytes, bytes]) -> int:
        """Write the values that the topic does not have; return their number."""
        left = {key: value for key, value in wanted.items() if self._values.get(key) != value}
        if left:
            identify(self._producer, self._properties, self._watch, f"writing to {self._topic}")
        refused: list[StraitError] = []

        def done(error: KafkaError | None, message: Message) -> None:
            key, value = message.key(), message.value()
            if error is not None:
                refused.append(self._watch.translate(error, f"writing to {self._topic}"))
            elif key is not None:
                self._values[key] = value

        for key, value in left.items():
            while True:
                try:
                    self._producer.produce(self._topic, key=key, value=value, partition=0, on_delivery=done)
                    break
                except BufferError:
                    self._producer.poll(0.1)
        if self._producer.flush(_SECONDS + 1.0):
            self._producer.purge()
            raise ClusterUnavailable(self._watch.cluster, f"writing to {self._topic}: timed out")
        if refused:
            raise refused[0]
        return len(left)
