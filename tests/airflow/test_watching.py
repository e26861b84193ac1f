"""What a watch says about its source and its settings: each reason names what changed, and nothing else."""

import json
from pathlib import Path

import pytest
import yaml

from strait_airflow.sources import Topics
from strait_airflow.watching import LinkWatch

pytestmark = pytest.mark.core

VARIABLE = "AIRFLOW_VAR_STRAIT_TOPICS_SHOP"
SOURCE = Topics({"orders": 2, "payments": 1, "clicks": 1})


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LinkWatch:
    """Of a link that selects `orders` and `payments`, which has looked once."""
    file = tmp_path / "links.yaml"
    clusters = {"a": {"bootstrap.servers": "127.0.0.1:1"}, "b": {"bootstrap.servers": "127.0.0.1:2"}}
    link = {"source": "a", "destination": "b", "topics": {"include": ["orders", "payments"]}}
    file.write_text(yaml.safe_dump({"clusters": clusters, "links": {"shop": link}}))
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(file))
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
    made = LinkWatch("shop")
    made._read_settings()
    assert made._of_source(SOURCE) is not None
    return made


def select(monkeypatch: pytest.MonkeyPatch, watch: LinkWatch, topics: object) -> None:
    monkeypatch.setenv(VARIABLE, topics if isinstance(topics, str) else json.dumps(topics))
    watch._read_settings()


def test_an_edit_tells_what_is_selected_now_and_nothing_of_the_source(watch, monkeypatch):
    select(monkeypatch, watch, {"include": ["payments", "clicks"]})
    found = watch._of_source(SOURCE)
    assert found is not None
    assert found.text == "it selects now: +clicks, -orders"
    assert watch._edit_text() == "its settings were edited: Airflow Variable strait_topics_shop"


def test_a_change_of_the_source_tells_nothing_of_the_selection(watch):
    found = watch._of_source(Topics({"orders": 4, "clicks": 1, "other": 1}))
    assert found is not None
    assert found.text == "topics of its source: orders 2 to 4 partitions, -payments"


def test_both_at_once_are_told_apart(watch, monkeypatch):
    select(monkeypatch, watch, {"include": ["orders", "clicks", "new"]})
    found = watch._of_source(Topics({"orders": 2, "payments": 1, "clicks": 1, "new": 1}))
    assert found is not None
    assert found.text == "topics of its source: +new; it selects now: +clicks, -payments"


def test_an_invalid_edit_removes_nothing(watch, monkeypatch):
    before = watch._of_source(SOURCE)
    select(monkeypatch, watch, '{"includ": ["orders"]}')
    assert watch.settings is not None and watch.settings.error is not None
    assert watch._of_source(SOURCE) == before
    select(monkeypatch, watch, {"include": ["orders", "payments"]})
    assert watch._of_source(SOURCE).value == before.value, "the selection that was in force before"
