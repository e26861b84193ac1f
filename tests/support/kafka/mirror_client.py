"""MirrorMaker 2's own client, from Kafka's jars, in a JVM that this process talks to: what existing tools stand on."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from strait.embedded import jars
from strait.embedded.kafka import Cluster
from strait.launch.java import find_java
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
        self._properties = jvm.java.util.HashMap()
        for name, value in cluster.client_properties.items():
            self._properties.put(name, value)

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
    """Its JVM ends with the block, and with this process however that ends."""
    bridge = next(Path(pyspark.__file__).parent.glob("jars/py4j-*.jar"))
    port, process = launch_gateway(
        classpath=jars.classpath(),
        jarpath=str(bridge),
        java_path=str(find_java()),
        die_on_exit=True,
        redirect_stdout=subprocess.DEVNULL,
        redirect_stderr=subprocess.DEVNULL,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    try:
        yield MirrorClient(gateway.jvm, cluster)
    finally:
        gateway.shutdown()
        process.communicate(timeout=30)
