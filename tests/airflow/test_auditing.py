"""The task of the audit DAG, on real brokers and Spark, called as Airflow calls it."""

import logging
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.sdk.exceptions import AirflowFailException
from confluent_kafka import Producer

from strait.config.audit import AuditJob, AuditRequest
from strait.control.audit import AuditRun, Ended
from strait_airflow.auditing import audit, audit_id, result_of
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


def instance(run_id: str, **more: int) -> Any:
    """A task instance of the audit DAG."""
    fields = {"dag_id": "strait-audit", "task_id": "compare", "map_index": 0, "max_tries": 1, "try_number": 1}
    return SimpleNamespace(**{**fields, **more, "run_id": run_id})


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

    equal, differing = (instance(f"scheduled__2026-11-{day}T00:00:00+00:00") for day in (26, 27))
    said = audit(name, ASKED, equal, "2026-11-26")
    assert "verdict equal, 1,000 records compared, 0 differences" in said
    assert "2 of 2 chunks" in caplog.text
    assert audit(name, ASKED, equal, "2026-11-26") == said, "a retry reads the result"
    said = audit(name, ASKED | {"ledger": True}, instance("manual__by-ledger"), "2026-11-26")
    assert "verdict equal, 1,000 records compared, 0 differences" in said
    producer = Producer(link.destination.client_properties)
    producer.produce(topic_name, b"of somebody else", b"x", 1)
    assert producer.flush(60) == 0
    with pytest.raises(AirflowFailException, match="verdict different, 1,000 records compared, 1 difference,"):
        audit(name, ASKED, differing, "2026-11-27")
    assert "'kind': 'foreign'" in caplog.text
    with monkeypatch.context() as patched:
        patched.setattr(AuditRun, "certificate", lambda _: None)  # as if it were in another file system
        with pytest.raises(AirflowFailException, match="verdict different, 1,000 records compared, certificate"):
            audit(name, ASKED, differing, "2026-11-27")
    with pytest.raises(AirflowFailException, match="not a rate"):
        audit(name, ASKED | {"budget": "fast"}, instance("manual__1"), "x")


def _ended(verdict: str, records: int, certificate: dict[str, Any] | None = None) -> Ended:
    return Ended("an-audit", certificate, "/audits/an-audit", verdict, records)


@pytest.mark.parametrize("ended", [_ended("different", 7), _ended("incomplete", 0), _ended("", 0)], ids=str)
def test_a_task_is_not_successful_if_nothing_was_compared_or_the_verdict_is_unknown(ended: Ended) -> None:
    with pytest.raises(AirflowFailException, match=f"verdict {ended.verdict or 'unknown'}, "):
        result_of("a-to-b", ended)


def test_an_audit_that_is_incomplete_logs_what_is_not_covered(caplog: pytest.LogCaptureFixture) -> None:
    body = {"differences": [], "not_covered": ["orders-1: no answer"], "unexplained": {}}
    said = result_of("a-to-b", _ended("incomplete", 7, {"body": body}))
    assert "verdict incomplete, 7 records compared, 0 differences" in said
    assert "not covered: orders-1: no answer" in caplog.text


RUN = "scheduled__2026-11-26T00:00:00+00:00"


def test_an_audit_has_an_id_that_a_directory_can_have_and_that_names_its_run() -> None:
    assert re.fullmatch(r"a-to-b-scheduled__2026-11-26T00-00-00-00-00-[0-9a-f]{16}", audit_id("a-to-b", instance(RUN)))
    longest = [audit_id("a" * 60, instance(f"manual__{'x' * 200}{end}")) for end in "yz"]
    assert [len(id_) for id_ in longest] == [100, 100]
    assert len(set(longest)) == 2
    for id_ in (*longest, audit_id("_", instance("é"))):
        AuditJob(id=id_, directory="/audits", request=AuditRequest())


def test_a_retry_continues_an_audit_and_a_task_that_was_cleared_begins_another(monkeypatch: pytest.MonkeyPatch) -> None:
    ids: list[str] = []

    def run_audit(_link: str, _request: AuditRequest, id_: str, _slots: int) -> Ended:
        ids.append(id_)
        return _ended("equal", 7)

    monkeypatch.setattr("strait_airflow.auditing.run_audit", run_audit)
    first, retried = instance(RUN), instance(RUN, try_number=2)
    cleared = instance(RUN, try_number=3, max_tries=3)
    mapped = instance(RUN, map_index=1)
    for ti in (first, retried, cleared, mapped):
        audit("a-to-b", ASKED, ti, "2026-11-26")
    assert ids[0] == ids[1]
    assert len({ids[0], ids[2], ids[3]}) == 3
