"""`strait audit` as it is typed: a Spark job compares a link's topics, is killed and continued, and certifies the result."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from strait.audit.publishing import ResultLog, audits
from strait.config.cluster import Cluster
from strait.config.naming import ledger_topic
from strait.spark.ledger_files import parquet
from support.fixtures.waiting import eventually
from support.kafka.topics import delete_before
from support.links.audit_command import Command
from support.links.engine_link import EngineLink

pytestmark = [pytest.mark.spark, pytest.mark.broker]

RECORDS = 6000


@pytest.fixture
def copied(clusters: Any, topic_name: str, tmp_path: Path) -> Iterator[EngineLink]:
    """A link that has copied two partitions, and still runs."""
    link = EngineLink(
        topic_name[-20:].replace(".", "-"), clusters.source, clusters.destination, tmp_path, {topic_name: 2}
    )
    link.make_topics()
    producer = Producer(
        link.source.client_properties | {"compression.type": "lz4", "batch.num.messages": 500, "linger.ms": 100}
    )
    for number in range(RECORDS):
        producer.produce(topic_name, os.urandom(300), b"%d" % number, number % 2)
        producer.poll(0)
    assert producer.flush(60) == 0
    link.publish()
    link.start_slot()
    link.until_copied()
    yield link
    link.stop()


@pytest.mark.core
def test_a_link_is_audited_and_its_certificate_verified(copied: EngineLink, topic_name: str, tmp_path: Path) -> None:
    strait = Command(tmp_path, copied.settings)
    key = Ed25519PrivateKey.generate()
    private, public = tmp_path / "key.pem", tmp_path / "pub.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    out = tmp_path / "certificate.json"

    shown = strait(copied.name, topic_name, "--strong", "--out", str(out), "--key", str(private))
    assert "verdict equal" in shown and f"{topic_name}-1" in shown
    assert "signature is valid" in strait("verify", str(out), "--key", str(public))
    whole = json.loads(out.read_text())
    assert whole["body"]["records"] == whole["body"]["by_batch"] == RECORDS
    assert whole["body"]["topics"][0]["source_id"]

    again = json.loads(strait(copied.name, "--strong", "-o", "json"))
    assert again["sha256"] != "" and again["body"]["partitions"] == whole["body"]["partitions"]
    there = Cluster(copied.destination.client_properties, "destination")
    (first, second) = audits(there, copied.name)
    assert (first.sha256, first.verdict) == (whole["sha256"], "equal")
    (result,) = ResultLog(there, copied.name).newest().values()
    assert (result.audit, result.verified_until_ms) == (second.id, second.planned_at_ms)
    assert whole["sha256"] in strait("list", copied.name)
    out.write_text(out.read_text().replace('"equal"', '"explained"', 1))
    assert "changed" in json.loads(strait("verify", str(out), "-o", "json", code=1))["problems"][0]
    eventually(lambda: not strait.processes(), what="nothing of it is left")


def test_the_destination_is_checked_by_the_files_of_the_ledger_while_the_source_is_lost(
    copied: EngineLink, topic_name: str, tmp_path: Path
) -> None:
    """Of applications under Airflow and under `strait run`, which have them at different places."""
    copied.publish(stopped=True)
    eventually(
        lambda: sum(one.records for part in copied.told_for_the_ledger() for one in part.entries) == RECORDS,
        what="the slot has written its rows",
    )
    parts = copied.told_for_the_ledger()
    delete_before(copied.destination, ledger_topic(copied.name), {0: -1})
    settings = copied.settings
    settings["clusters"]["a"] = {"bootstrap.servers": "127.0.0.1:1"}
    strait = Command(tmp_path, settings)
    for number, of_link in enumerate((f"link={copied.name}", f"{copied.name}/default/link={copied.name}")):
        folder = strait.home / "ledger" / of_link / "date=2026-11-26" / f"application={number}"
        folder.mkdir(parents=True)
        (folder / "part-0.parquet").write_bytes(parquet(parts[number::2]))
    whole = json.loads(strait(copied.name, "--ledger", "-o", "json"))
    assert whole["body"]["verdict"] == "equal", whole["body"]
    assert (whole["body"]["records"], whole["body"]["source_bytes"]) == (RECORDS, 0)
    (result,) = ResultLog(Cluster(copied.destination.client_properties, "b"), copied.name).newest().values()
    assert (result.kind, result.topic) == ("ledger", topic_name)
    assert result.verified_until_ms == min(one["newest_ms"] for one in whole["body"]["partitions"])


def test_a_copy_that_differs_ends_with_3_and_names_the_record(
    copied: EngineLink, topic_name: str, tmp_path: Path
) -> None:
    """By order, between clusters of the file, without a link: the source has had one more record, and has another one."""
    settings = {"clusters": copied.settings["clusters"], "links": {}}
    strait = Command(tmp_path, settings)
    producer = Producer(copied.destination.client_properties)
    producer.produce(topic_name, b"of somebody else", b"x", 1)
    assert producer.flush(30) == 0
    words = ("--relation", "order", "--source", "a", "--destination", "b", topic_name)
    whole = json.loads(strait(*words, "-o", "json", code=3))
    assert whole["body"]["unexplained"] == {"extra": 1}
    (difference,) = whole["body"]["differences"]
    assert (difference["kind"], difference["copy"]) == ("extra", RECORDS // 2)
    assert whole["body"]["link"] is None
    assert "has no topic" in _error(strait, "--relation", "order", "--source", "a", "--destination", "b", "none")


def _error(strait: Command, *words: str) -> str:
    process = strait.start(*words)
    _, err = process.communicate(timeout=400)
    assert process.returncode in (1, 2), err
    return err


def test_an_audit_whose_processes_are_killed_goes_on_where_it_was(copied: EngineLink, tmp_path: Path) -> None:
    """A worker, then the driver, then the command itself; `--resume` continues. Each chunk counts once."""
    settings = copied.settings
    strait = Command(tmp_path, settings)
    slow = strait.start(copied.name, "--budget", "60kB/s")
    eventually(lambda: strait.progress().get("state") == "comparing", what="it compares", within_seconds=240)
    worker = eventually(
        lambda: next((one for one in strait.processes() if "pyspark.worker" in " ".join(one.cmdline())), None),
        what="a worker",
    )
    worker.kill()
    driver = next(
        one for one in strait.processes() if "replicate.py" in " ".join(one.cmdline()) and one.name() != "java"
    )
    driver.kill()
    eventually(lambda: driver.pid not in {one.pid for one in strait.processes()}, what="its end")
    eventually(strait.processes, what="another driver", within_seconds=120)
    (audit_id,) = [path.name for path in (strait.home / "audits").iterdir()]
    slow.send_signal(signal.SIGTERM)
    _, err = slow.communicate(timeout=120)
    assert slow.returncode == 1 and f"--resume {audit_id}" in err
    assert not strait.processes()

    strait.file.write_text(yaml.safe_dump(settings))
    whole = json.loads(strait("--resume", audit_id, "-o", "json"))
    assert whole["times"]["id"] == audit_id
    assert whole["body"]["records"] == RECORDS
    assert whole["body"]["verdict"] == "equal"
