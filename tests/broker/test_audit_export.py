"""`strait audit export`: the records that the destination lacks, and no others."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from strait.cli.main import app
from strait.errors import StateError
from support.fixtures.waiting import eventually
from support.kafka.records import read_all
from support.kafka.topics import create
from support.links.auditing import audit_copies

pytestmark = pytest.mark.broker


def test_missing_and_different_records_are_exported(clusters: Any, topic_name: str, tmp_path: Path) -> None:
    """By order, of a copy that another tool made: it has left out some, changed one and doubled one."""
    source, destination = clusters.source, clusters.destination
    for cluster in (source, destination):
        create(cluster, topic_name, 2)
    producer = Producer(source.client_properties)
    for number in range(40_000):
        producer.produce(topic_name, b"%d" % number, b"key %d" % number, number % 2)
        producer.poll(0)
    assert producer.flush(60) == 0
    producer = Producer(destination.client_properties)
    for partition, records in enumerate(read_all(source, topic_name, 2)):
        for one in records:
            if partition == 0 and one.offset in (5, 6, 19_000):
                continue
            value = b"changed" if (partition, one.offset) == (1, 7) else one.value
            times = 2 if (partition, one.offset) == (1, 70) else 1
            for _ in range(times):
                producer.produce(topic_name, value, one.key, partition, timestamp=one.timestamp[1])
            producer.poll(0)
    assert producer.flush(60) == 0
    found = audit_copies(source, destination, {topic_name: topic_name}, "order")
    assert found.unexplained == {"missing": 3, "different": 1, "duplicate": 1}
    found.write(tmp_path / "audit")
    links = {
        "clusters": {"source": source.client_properties, "destination": destination.client_properties},
        "links": {},
    }
    (tmp_path / "links.yaml").write_text(yaml.safe_dump(links))
    out = tmp_path / "lacking.jsonl"

    def export(*more: str) -> Any:
        words = ["audit", "export", str(tmp_path / "audit"), "--out", str(out), "-f", str(tmp_path / "links.yaml")]
        return CliRunner().invoke(app, [*words, *more])

    done = export()
    assert done.exit_code == 0 and "exported 4 records of 2 partitions" in done.output, (done.output, done.exception)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted((one["partition"], one["offset"]) for one in lines) == [(0, 5), (0, 6), (0, 19_000), (1, 7)]
    again = export()
    assert again.exit_code != 0 and "exists" in str(again.exception)

    admin = AdminClient(source.client_properties)
    (deleted,) = admin.delete_topics([topic_name]).values()
    deleted.result(30)

    def refused() -> bool:
        out.unlink(missing_ok=True)
        gone = export().exception
        return isinstance(gone, StateError) and "deleted or recreated" in str(gone)

    eventually(refused, what="the deletion is seen by every broker")
    assert not out.exists()
