"""The task of the audit DAG, on real brokers and Spark, called as Airflow calls it."""

import logging
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk.exceptions import AirflowFailException
from confluent_kafka import Producer

from strait_airflow.auditing import audit, audit_id
from support.links.engine_link import EngineLink

pytestmark = [pytest.mark.airflow, pytest.mark.broker, pytest.mark.spark]

ASKED = {
    "topics": [],
    "sample": 1,
    "seed": "",
    "strong": False,
    "replicas": False,
    "ledger": False,
    "budget": "",
    "slots": 1,
}


def test_an_equal_link_is_reported_and_one_that_differs_fails_the_task(
    clusters: Any, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    name = topic_name[-20:].replace(".", "-")
    link = EngineLink(name, clusters.source, clusters.destination, tmp_path, {topic_name: 2})
    link.make_topics()
    producer = Producer(link.source.client_properties)
    for number in range(1000):
        producer.produce(topic_name, b"value %d" % number, b"%d" % number, number % 2)
    assert producer.flush(60) == 0
    link.publish()
    slot = link.start_slot()
    link.until_copied()
    link.publish(stopped=True)
    slot.wait(60)
    file = tmp_path / "links.yaml"
    file.write_text(yaml.safe_dump(link.settings))
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(file))
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))

    said = audit(name, ASKED, "scheduled__2026-11-26T00:00:00+00:00", "2026-11-26")
    assert "verdict equal, 1,000 records compared, 0 differences" in said
    assert "2 of 2 chunks" in caplog.text
    assert audit(name, ASKED, "scheduled__2026-11-26T00:00:00+00:00", "2026-11-26") == said, "a retry reads the result"
    said = audit(name, ASKED | {"ledger": True}, "manual__by-ledger", "2026-11-26")
    assert "verdict equal, 1,000 records compared, 0 differences" in said
    producer = Producer(link.destination.client_properties)
    producer.produce(topic_name, b"of somebody else", b"x", 1)
    assert producer.flush(60) == 0
    with pytest.raises(AirflowFailException, match="verdict different, 1,000 records compared, 1 difference,"):
        audit(name, ASKED, "scheduled__2026-11-27T00:00:00+00:00", "2026-11-27")
    assert "'kind': 'foreign'" in caplog.text
    with pytest.raises(AirflowFailException, match="not a rate"):
        audit(name, ASKED | {"budget": "fast"}, "manual__1", "x")


def test_the_audit_of_a_run_has_an_id_that_a_directory_can_have() -> None:
    assert audit_id("a-to-b", "scheduled__2026-11-26T00:00:00+00:00") == "a-to-b-scheduled__2026-11-26T00-00-00-00-00"
    assert len(audit_id("a" * 60, "manual__" + "x" * 200)) == 100
