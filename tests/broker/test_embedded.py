"""The embedded clusters themselves: what every other test stands on."""

import os
import signal
import socket
import subprocess
import sys
import uuid
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from strait.embedded import class_data
from strait.embedded.kafka import Cluster
from strait.embedded.ports import free_ports
from strait.errors import SetupError
from strait.launch import java

pytestmark = pytest.mark.broker


def create_topic(cluster: Cluster, topic: str, *, replication_factor: int = 1) -> None:
    admin = AdminClient(cluster.client_properties)
    admin.create_topics([NewTopic(topic, 1, replication_factor)])[topic].result(30)


def produce(cluster: Cluster, topic: str, values: list[bytes]) -> None:
    errors: list[KafkaError] = []
    producer = Producer(cluster.client_properties)
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: errors.append(error) if error else None)
    assert producer.flush(30) == 0
    assert errors == []


def consume(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(cluster.client_properties | {"group.id": topic, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        return [message.value() for message in consumer.consume(count, timeout=60)]
    finally:
        consumer.close()


@pytest.mark.core
def test_a_pair_of_clusters_takes_and_gives_records(clusters, topic_name):
    for cluster in (clusters.source, clusters.destination):
        create_topic(cluster, topic_name)
        produce(cluster, topic_name, [b"one", b"two"])
        assert consume(cluster, topic_name, 2) == [b"one", b"two"]


def test_a_broker_maps_the_class_data_that_was_made_at_installation(tmp_path):
    archive = class_data.make()
    made = archive.stat().st_mtime_ns
    with Cluster(tmp_path) as cluster:
        assert str(archive) in Path(f"/proc/{cluster.pid(1)}/maps").read_text(encoding="utf-8")
    assert class_data.make().stat().st_mtime_ns == made, "it is made once"
    assert [path.name for path in archive.parent.glob(".*.jsa-*")] == []


@pytest.mark.core
def test_a_killed_broker_comes_back_with_its_data_on_its_port(three_brokers, topic_name):
    create_topic(three_brokers, topic_name, replication_factor=3)
    produce(three_brokers, topic_name, [b"before"])
    address, first_pid = three_brokers.bootstrap, three_brokers.pid(2)

    three_brokers.kill(2)
    assert three_brokers.pid(2) is None
    produce(three_brokers, topic_name, [b"meanwhile"])
    three_brokers.start_broker(2)

    assert three_brokers.pid(2) not in (None, first_pid)
    assert three_brokers.bootstrap == address
    assert consume(three_brokers, topic_name, 2) == [b"before", b"meanwhile"]


def test_a_detached_cluster_is_found_and_ended_by_its_folder(tmp_path, topic_name):
    started = Cluster(tmp_path, detached=True)
    started.start()
    try:
        create_topic(started, topic_name)
        produce(started, topic_name, [b"kept"])

        found = Cluster.attach(tmp_path)
        assert found.running
        assert found.pid(1) == started.pid(1)
        found.stop()
        assert not started.running

        found.start()
        assert consume(started, topic_name, 1) == [b"kept"]
    finally:
        started.stop()


@pytest.mark.core
def test_brokers_die_with_a_process_that_is_killed(tmp_path):
    starter = (
        "import sys, time; from pathlib import Path; from strait.embedded.kafka import Cluster\n"
        "cluster = Cluster(Path(sys.argv[1])); cluster.start(); print(cluster.pid(1), flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", starter, tmp_path], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        broker = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    # Nobody may be there to bury it, so a zombie counts as gone.
    psutil.wait_procs([broker], timeout=30)
    assert not broker.is_running() or broker.status() == psutil.STATUS_ZOMBIE


def test_a_port_in_use_is_named_with_its_holder(tmp_path):
    port = free_ports(1)[0]
    named = rf"127\.0\.0\.1:{port}: the port is in use by process {os.getpid()} "
    with socket.create_server(("127.0.0.1", port)), pytest.raises(SetupError, match=named):
        Cluster(tmp_path, ports=[port]).start()
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_ends_at_start_shows_the_end_of_its_log(tmp_path):
    cluster = Cluster(tmp_path, properties={"log.retention.ms": "0"})
    with pytest.raises(SetupError, match=r"(?s)broker-1: .*log\.retention\.ms"):
        cluster.start()
    assert not cluster.running


def test_what_a_node_logged_behind_its_error_does_not_hide_it(tmp_path):
    cluster = Cluster(tmp_path)
    folder = tmp_path / "broker-1"
    folder.mkdir()
    behind = "".join(f"2026-11-22 INFO closed part {number}\n" for number in range(20))
    log = f"2026-11-22 INFO starting\n2026-11-22 ERROR Exiting\njava.net.BindException: in use\n\tat a.b.C\n{behind}"
    (folder / "server.log").write_text(log)
    (node,) = cluster._layout.brokers
    assert cluster._last_lines(node).splitlines()[:2] == [
        "  2026-11-22 ERROR Exiting",
        "  java.net.BindException: in use",
    ]


def test_missing_java_says_what_to_install(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(SetupError, match="apt-get install openjdk-17-jre-headless"):
        java.find_java()


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ('openjdk version "1.8.0_292"', 8),
        ('java version "17" 2021-09-14 LTS', 17),
        ('openjdk version "21.0.2" 2024-01-16', 21),
        ("no version at all", None),
    ],
)
def test_java_too_old_is_refused_and_new_enough_is_taken(tmp_path, monkeypatch, says, expected):
    fake = fake_java(tmp_path / "bin" / "java", says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    if expected is not None and expected >= java.MINIMUM_VERSION:
        assert java.find_java() == fake
    else:
        with pytest.raises(SetupError, match=f"is Java {expected}" if expected else "does not run"):
            java.find_java()


def fake_java(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.mark.core
def test_clients_with_wrong_credentials_are_refused(tmp_path, topic_name):
    with Cluster(tmp_path, users={"alice": "right"}) as cluster:
        create_topic(cluster, topic_name)
        produce(cluster, topic_name, [b"hers"])
        assert consume(cluster, topic_name, 1) == [b"hers"]

        errors: list[KafkaError] = []
        wrong = cluster.client_properties | {"sasl.password": "wrong", "log_level": "0"}
        client = AdminClient(wrong | {"error_cb": errors.append})
        while not any(error.code() == KafkaError._AUTHENTICATION for error in errors):
            client.poll(1)  # the suite's timeout bounds this

        settings = (tmp_path / "broker-1" / "server.properties").stat()
        assert settings.st_mode & 0o077 == 0, "passwords are for their owner's eyes only"


def test_a_cluster_id_may_begin_with_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strait.embedded.kafka.uuid.uuid4", lambda: uuid.UUID(int=0xF8 << 120))
    with Cluster(tmp_path) as cluster:
        admin = AdminClient(cluster.client_properties)
        facts = admin.describe_cluster().result(30)
    assert facts.cluster_id.startswith("-")
