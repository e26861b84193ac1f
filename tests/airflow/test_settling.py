"""What the task of the quarantine DAG does, on real brokers, called as Airflow calls it."""

import logging
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk.exceptions import AirflowFailException

from strait.control.quarantine import Quarantine
from strait.kafka.admin import Admin, NewTopic
from strait.state.topics import ensure_state_topics
from strait.wire.records import Record
from strait_airflow.settling import settle
from support.kafka.log_ends import ends
from support.links.handles import handle_into
from support.links.quarantined import keep_aside

pytestmark = [pytest.mark.airflow, pytest.mark.broker]

TIME_MS = 1_600_000_000_000


@pytest.fixture
def asked(clusters: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Params of the DAG, of a link with two records of `orders` and one of `payments` in quarantine."""
    link = f"l-{uuid.uuid4().hex[:8]}"
    file = tmp_path / "links.yaml"
    both = {"a": clusters.source.client_properties, "b": clusters.destination.client_properties}
    file.write_text(yaml.safe_dump({"clusters": both, "links": {link: {"source": "a", "destination": "b"}}}))
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(file))
    ensure_state_topics(Admin(clusters.destination.client_properties, "b"), link, None)
    for topic, offsets in {"orders": (7, 8), "payments": (9,)}.items():
        records = [Record(offset, TIME_MS, b"k", b"v", ()) for offset in offsets]
        keep_aside(clusters.destination, link, *records, topic=topic)
    wanted = {"link": link, "action": "drop", "dry_run": False}
    return wanted | {"topic": "", "partition": None, "reason": "", "to": ""}


def left(clusters: Any, link: str) -> list[int]:
    contents = Quarantine(handle_into(clusters.destination.client_properties, "b", link)).contents()
    return [entry.offset for entry in contents.entries() if not entry.settled]


@pytest.mark.core
def test_a_dry_run_names_the_records_and_settles_none(clusters, asked, caplog):
    caplog.set_level(logging.INFO)
    said = settle(asked | {"dry_run": True, "topic": "orders"}, "ann")
    assert said == f"link {asked['link']}: drop would settle 2 records"
    assert "orders-0 offset 7: batch_refused: said the broker" in caplog.text
    assert left(clusters, asked["link"]) == [7, 8, 9]


def test_only_the_records_that_were_chosen_are_dropped(clusters, asked):
    assert "drop by ann: settled 1 record" in settle(asked | {"topic": "payments"}, "ann")
    assert "settled 0 records" in settle(asked | {"partition": 1}, "ann")
    assert left(clusters, asked["link"]) == [7, 8]
    assert "settled 2 records" in settle(asked | {"reason": "batch_refused"}, "ann")
    assert left(clusters, asked["link"]) == []


def test_records_are_replayed_once_into_the_topic_that_is_named(clusters, asked):
    replayed = f"{asked['link']}-replayed"
    asked |= {"action": "replay", "topic": "orders"}
    with pytest.raises(AirflowFailException, match="the destination has no topic"):
        settle(asked, "ann")
    with pytest.raises(AirflowFailException, match="the destination has no topic"):
        settle(asked | {"to": replayed, "dry_run": True}, "ann")
    Admin(clusters.destination.client_properties, "b").create([NewTopic(replayed, 1, 1)])
    assert "replay by ann: settled 2 records" in settle(asked | {"to": replayed}, "ann")
    assert "settled 0 records" in settle(asked | {"to": replayed}, "ann")
    assert left(clusters, asked["link"]) == [9]
    assert ends(clusters.destination, replayed, 1) == [2 + 1]  # and the end of the transaction
