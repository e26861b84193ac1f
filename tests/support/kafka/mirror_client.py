"""MirrorMaker 2's own client, from Kafka's jars, in a JVM that this process talks to: what existing tools stand on."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from strait.embedded.kafka import Cluster
from support.kafka.jvm import java_map, kafka_jvm
from support.kafka.records import Record

_MIRROR = "org.apache.kafka.connect.mirror"


class Beat(NamedTuple):
    """What MirrorMaker 2 reads in a heartbeat."""

    source: str
    target: str
    at_ms: int


class MirrorClient:
    """``RemoteClusterUtils`` and ``Heartbeat``, asked about one cluster."""

    def __init__(self, jvm: Any, cluster: Cluster) -> None:
        self._jvm = jvm
        self._utils = getattr(jvm, f"{_MIRROR}.RemoteClusterUtils")
        self._properties = java_map(jvm, cluster.client_properties)

    def upstream_clusters(self) -> set[str]:
        return set(self._utils.upstreamClusters(self._properties))

    def hops_from(self, alias: str) -> int:
        return int(self._utils.replicationHops(self._properties, alias))

    def heartbeat(self, topic: str, record: Record) -> Beat:
        kafka_record = getattr(self._jvm, "org.apache.kafka.clients.consumer.ConsumerRecord")(
            topic, 0, record.offset, bytearray(record.key or b""), bytearray(record.value or b"")
        )
        found = getattr(self._jvm, f"{_MIRROR}.Heartbeat").deserializeRecord(kafka_record)
        return Beat(found.sourceClusterAlias(), found.targetClusterAlias(), found.timestamp())


@contextmanager
def mirror_client(cluster: Cluster) -> Iterator[MirrorClient]:
    """Its JVM ends with the block."""
    with kafka_jvm() as jvm:
        yield MirrorClient(jvm, cluster)
