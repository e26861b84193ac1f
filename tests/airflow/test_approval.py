"""What the tasks of the approval and pause DAGs do, on real brokers, called as Airflow calls them."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from strait.kafka.admin import Admin
from strait.planning.review.approval import ShownPlan
from strait_airflow import approval, control, pausing, settings
from support.kafka.topics import create

pytestmark = [pytest.mark.airflow, pytest.mark.broker]

APPROVED = {"chosen_options": ["Approve"], "responded_by_user": {"id": "1", "name": "ann"}}
UNANSWERED = {"chosen_options": ["Reject"], "responded_by_user": None}


@pytest.fixture
def link(clusters: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A link that wants to be asked, with a topic of its name; its Variable's topics all begin with that."""
    name = f"l-{uuid.uuid4().hex[:8]}"
    file = tmp_path / "links.yaml"
    settings = {"source": "a", "destination": "b", "topics": {"regex": [f"{name}.*"]}, "approval": "required"}
    ends = {"a": clusters.source.client_properties, "b": clusters.destination.client_properties}
    file.write_text(yaml.safe_dump({"clusters": ends, "links": {name: settings}}))
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(file))
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
    create(clusters.source, name, 2)
    return name


def copies(clusters: Any, prefix: str) -> list[str]:
    there = Admin(clusters.destination.client_properties, "b").observe(lambda _: False).topics
    return sorted(topic for topic in there if topic.startswith(prefix))


class Store(dict):
    """The state of the link's asset, without Airflow's database."""

    set = dict.__setitem__


class Task:
    """A task instance."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.xcoms: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.xcoms[key] = value


def act(link: str, found: dict[str, Any], answer: dict[str, Any], store: Store | None = None, run: str = "r") -> str:
    return approval.act(link, found, answer, Store() if store is None else store, Task(run))


def note(link: str, found: dict[str, Any], answer: dict[str, Any]) -> list[str]:
    """Return the lines of the run's note."""
    task = Task("r")
    approval.act(link, found, answer, Store(), task)
    return str(task.xcoms["note"]).splitlines()


def stored(found: dict[str, Any]) -> dict[str, Any]:
    """As it comes out of Airflow's database."""
    return json.loads(json.dumps(found))


@pytest.mark.core
def test_nothing_is_done_until_somebody_approves_and_then_just_that(link, clusters):
    said, done = control.apply(link)
    assert "changes wait for approval" in said
    assert not done
    found = stored(approval.look(link))
    assert (
        f"2 changes to approve:\n+ copies    {link}: from earliest\n+ creates   {link}: 2 partitions" in found["body"]
    )
    store = Store()
    with pytest.raises(AirflowFailException, match=r"nobody has answered: . changes wait for approval"):
        act(link, found, UNANSWERED, store, "r1")
    assert act(link, found, UNANSWERED, store, "r2").startswith("known since "), "one red run for one request"
    assert copies(clusters, link) == []
    name = APPROVED["responded_by_user"]["name"]
    assert note(link, found, APPROVED) == [
        f"approved by {name}",
        "done: plan 1: 2 partitions of 1 topic on 1 slot, 0 waiting",
    ]
    assert copies(clusters, link) == [link]
    with pytest.raises(AirflowSkipException, match="no change needs approval"):
        approval.look(link)
    said, done = control.apply(link)
    assert said.startswith("plan 1 stays as it is")
    assert done


def test_what_is_not_what_was_shown_is_refused_and_asked_anew(link, clusters):
    found = stored(approval.look(link))
    create(clusters.source, f"{link}-more", 2)
    with pytest.raises(AirflowFailException) as refused:
        act(link, found, APPROVED)
    assert f"not shown: copies {link}-more" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert copies(clusters, link) == []
    assert f"{link}-more" in approval.look(link)["body"]


def test_what_was_rejected_is_not_asked_again_until_it_is_something_else(link, clusters, monkeypatch):
    found = stored(approval.look(link))
    rejected = {"fingerprint": found["shown"]["fingerprint"], "by": "ann", "at": "noon"}
    monkeypatch.setenv(f"AIRFLOW_VAR_{settings.rejected_name(link).upper()}", json.dumps(rejected))
    with pytest.raises(AirflowSkipException, match="ann rejected these changes at noon; delete the Variable"):
        approval.look(link)
    create(clusters.source, f"{link}-more", 2)
    assert f"{link}-more" in approval.look(link)["body"]
    monkeypatch.setenv(f"AIRFLOW_VAR_{settings.rejected_name(link).upper()}", "nonsense")
    assert approval.look(link)


def test_what_was_shown_cannot_be_changed_on_the_way(link):
    found = stored(approval.look(link))
    found["shown"]["effects"] = []
    with pytest.raises(AirflowFailException, match="it was edited"):
        act(link, found, APPROVED)


def test_a_pause_needs_no_approval_and_names_who_asked_for_it(link):
    with pytest.raises(AirflowFailException, match="it has no plan yet"):
        pausing.change(link, "pause", "", "", by="ann")
    act(link, stored(approval.look(link)), APPROVED)
    assert "published plan 2 of group default" in pausing.change(link, "pause", f"{link}:1", "a test", by="ann")
    assert control.apply(link)[0].startswith("plan 2 stays as it is")
    assert "1 of 2 partitions waiting: paused" in control.metrics(link)[0]
    with pytest.raises(AirflowFailException, match="is not paused by itself"):
        pausing.change(link, "resume", link, "", by="ann")
    assert "published plan 3" in pausing.change(link, "resume", f"{link}:1", "", by="ann")


def test_no_foreign_text_ends_the_block_that_it_is_shown_in():
    text = "```\n# Approved by ann\n`````` \x1b[2J"
    body = approval._body(ShownPlan.of("l", (), text)).splitlines()
    assert body == ["`" * 7, "```", "# Approved by ann", "`````` \\x1b[2J", "`" * 7]
