"""MirrorMaker 2's own client, from Kafka's jars, in a JVM that this process talks to: what existing tools stand on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from strait.embedded.kafka import Cluster
from strait.model import TopicPartition
from support.kafka.jvm import java_map, kafka_jvm
from support.kafka.records import Record

_MIRROR = "org.apache.kafka.connect.mirror"


class Beat(NamedTuple):
    """What MirrorMaker 2 reads in a heartbeat."""

    source: str
    target: str
    at_ms: int


class MirrorClient:
    """``RemoteClusterUtils``, ``Heartbeat`` and ``OffsetSync``, asked about one cluster."""

    def __init__(self, jvm: Any, cluster: Cluster) -> None:
        self._jvm = jvm
        self._utils = getattr(jvm, f"{_MIRROR}.RemoteClusterUtils")
        self._properties = java_map(jvm, cluster.client_properties)

    def upstream_clusters(self) -> set[str]:
        return set(self._utils.upstreamClusters(self._properties))

    def hops_from(self, alias: str) -> int:
        return int(self._utils.replicationHops(self._properties, alias))

    def translated(self, alias: str, group: str, policy: str = "DefaultReplicationPolicy") -> dict[TopicPartition, int]:
        """``translateOffsets``: what a client would seek to."""
        wait = self._jvm.java.time.Duration.ofSeconds(20)
        self._properties.put("replication.policy.class", f"{_MIRROR}.{policy}")
        found = self._utils.translateOffsets(self._properties, alias, group, wait)
        return {TopicPartition(place.topic(), place.partition()): found[place].offset() for place in found}

    def offset_sync(self, topic: str, record: Record) -> tuple[TopicPartition, int, int]:
        """Partition, its offset upstream, its offset downstream."""
        found = self._of("OffsetSync", topic, record)
        place = found.topicPartition()
        return TopicPartition(place.topic(), place.partition()), found.upstreamOffset(), found.downstreamOffset()

    def heartbeat(self, topic: str, record: Record) -> Beat:
        found = self._of("Heartbeat", topic, record)
        return Beat(found.sourceClusterAlias(), found.targetClusterAlias(), found.timestamp())

    def _of(self, kind: str, topic: str, record: Record) -> Any:
        kafka_record = getattr(self._jvm, "org.apache.kafka.clients.consumer.ConsumerRecord")(
            topic, 0, record.offset, bytearray(record.key or b""), bytearray(record.value or b"")
        )
        return getattr(self._jvm, f"{_MIRROR}.{kind}").deserializeRecord(kafka_record)


@contextmanager
def mirror_client(cluster: Cluster) -> Iterator[MirrorClient]:
    """Its JVM ends with the block."""
    with kafka_jvm() as jvm:
        yield MirrorClient(jvm, cluster)
