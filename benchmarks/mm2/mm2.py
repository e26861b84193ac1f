"""MirrorMaker 2 as its own distribution runs it (`connect-mirror-maker.sh`), tuned for throughput."""

from collections.abc import Mapping
from pathlib import Path

import strait.embedded
from mm2.copier import Command
from strait.embedded import jars
from strait.embedded.kafka import Cluster
from strait.launch.java import find_java

NAME = "mm2"
TASKS = 2
_BATCH_BYTES = 128 << 10
_LINGER_MS = 10
_POLL_RECORDS = 5000
_PARTITION_FETCH_BYTES = 4 << 20
_JAVA_NAMES = {"ssl.ca.location": "ssl.truststore.location"}

# connect-mirror-maker.sh and kafka-run-class.sh of Kafka 4.3.1
_JVM = (
    *("-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent", "-XX:-UsePerfData"),
)


def command(directory: Path, source: Cluster, destination: Cluster, topic: str) -> Command:
    """Write its settings into ``directory``."""
    settings = directory / "mm2.properties"
    wanted = _settings(source.client_properties, destination.client_properties, topic, len(destination.broker_ids))
    settings.write_text("".join(f"{key}={value}\n" for key, value in wanted.items()), encoding="utf-8")
    log = directory / "mm2.log"
    logging = Path(strait.embedded.__file__).parent / "log4j2.properties"
    argv = (
        str(find_java()),
        *_JVM,
        f"-Djava.io.tmpdir={directory}",
        f"-Dlog4j2.configurationFile={logging}",
        f"-Dstrait.log={log}",
        *("-cp", jars.classpath(), "org.apache.kafka.connect.mirror.MirrorMaker", str(settings)),
    )
    return Command(NAME, argv, log, f"source.{topic}", "connect.mirror.MirrorMaker")


def is_internal(topic: str) -> bool:
    """Topics in which it keeps its settings and positions; a fresh start needs them gone."""
    return topic.startswith("mm2-")


def _settings(
    source: Mapping[str, str], destination: Mapping[str, str], topic: str, replicas: int
) -> dict[str, str | int]:
    flow = "source->destination"
    producer: dict[str, str | int] = {
        "compression.type": "lz4",
        "batch.size": _BATCH_BYTES,
        "linger.ms": _LINGER_MS,
    }
    consumer: dict[str, str | int] = {
        "max.poll.records": _POLL_RECORDS,
        "max.partition.fetch.bytes": _PARTITION_FETCH_BYTES,
    }
    return {
        "clusters": "source, destination",
        **{f"source.{key}": value for key, value in _java_properties(source).items()},
        **{f"destination.{key}": value for key, value in _java_properties(destination).items()},
        f"{flow}.enabled": "true",
        f"{flow}.topics": topic,
        f"{flow}.emit.heartbeats.enabled": "false",
        f"{flow}.emit.checkpoints.enabled": "false",
        # Else it runs a second worker for the way back, only for heartbeats.
        "destination->source.enabled": "false",
        "destination->source.emit.heartbeats.enabled": "false",
        "tasks.max": TASKS,
        "replication.factor": replicas,
        "offset-syncs.topic.replication.factor": replicas,
        "offset.storage.replication.factor": replicas,
        "status.storage.replication.factor": replicas,
        "config.storage.replication.factor": replicas,
        "refresh.topics.interval.seconds": 5,
        "sync.topic.acls.enabled": "false",
        # The worker's producers take the cluster's `producer.*`, those of the copying tasks also `producer.override.*`.
        **{f"destination.producer.{key}": value for key, value in producer.items()},
        **{f"{flow}.producer.override.{key}": value for key, value in producer.items()},
        **{f"{flow}.consumer.{key}": value for key, value in consumer.items()},
    }


def _java_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """What a Java client needs for the same, by its own names."""
    named = {_JAVA_NAMES.get(name, name): value for name, value in properties.items()}
    return named | ({"ssl.truststore.type": "PEM"} if "ssl.truststore.location" in named else {})
