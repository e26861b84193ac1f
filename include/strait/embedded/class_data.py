"""A class-data archive of Kafka's brokers (JEP 350). With it a broker's start takes about half the CPU, since the JVM
maps some ten thousand classes instead of reading and checking them one by one.

``python -m strait.embedded.class_data`` creates it, once for each Java; `make install` does. Without it, or if jars or
Java have changed since, a JVM starts as it would without this module.
"""

import os
import signal
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from strait.embedded import jars
from strait.embedded.kafka import Cluster
from strait.embedded.waiting import wait_for
from strait.errors import SetupError
from strait.launch.step import run_step

_DUMP_SECONDS = 120.0
_TOPIC = "classes"
_ERRORS = 3  # syslog level: librdkafka would warn that a coordinator is still loading, and retry


def make() -> Path:
    """Start a broker, use it briefly, and make its JVM write an archive of the classes it has loaded. Does nothing if
    there is an archive. Returns the archive's path.

    Raises:
        SetupError: the broker does not start, or its JVM writes no archive.
    """
    archive = jars.class_data()
    if archive.is_file():
        return archive
    with tempfile.TemporaryDirectory(dir=archive.parent, prefix=f".{archive.name}-") as scratch:
        written = Path(scratch) / archive.name
        cluster = Cluster(Path(scratch) / "cluster", jvm_options=(f"-XX:ArchiveClassesAtExit={written}",))
        with cluster:
            _use(cluster)
            pid = cluster.pid(1)
            assert pid is not None  # it has just answered
            os.kill(pid, signal.SIGTERM)
            # `stop` would not wait long enough
            wait_for("embedded Kafka: writing its class-data archive", _DUMP_SECONDS, lambda: cluster.pid(1) is None)
        if not written.is_file():
            raise SetupError("embedded Kafka: its JVM wrote no class-data archive")
        written.replace(archive)
    return archive


def _use(cluster: Cluster) -> None:
    properties = cluster.client_properties | {"log_level": _ERRORS}
    admin = AdminClient(properties)
    for future in admin.create_topics([NewTopic(_TOPIC, 1)]).values():
        future.result(30)
    producer = Producer(properties | {"enable.idempotence": True, "compression.type": "lz4"})
    producer.produce(_TOPIC, b"value")
    producer.flush(30)
    consumer = Consumer(properties | {"group.id": _TOPIC, "auto.offset.reset": "earliest"})
    consumer.subscribe([_TOPIC])
    consumer.poll(30)
    consumer.close()


if __name__ == "__main__":
    sys.exit(run_step(make))
