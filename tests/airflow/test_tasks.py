"""What the tasks do, on real brokers, called as Airflow calls them but without Airflow around."""

import asyncio
import json
import logging
import subprocess
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from airflow.sdk.exceptions import AirflowFailException
from confluent_kafka import Producer

from strait.cli.cycles import Cycles
from strait.config.links import Spark, load_link
from strait.kafka.admin import Admin, NewTopic
from strait.launch.base import State
from strait.planning.plan.planner import Proposal
from strait.reasons import Reason
from strait_airflow import control
from strait_airflow.applications import launcher
from strait_airflow.failing_over import fail_over, rehearse
from strait_airflow.triggers import HealthTrigger
from support.fixtures.waiting import eventually

pytestmark = [pytest.mark.airflow, pytest.mark.broker]


@pytest.fixture
def link(clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A link of this test alone, with a topic of its name that holds ten records."""
    name = f"l-{uuid.uuid4().hex[:8]}"
    file = tmp_path / "links.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "clusters": {"a": clusters.source.client_properties, "b": clusters.destination.client_properties},
                "links": {name: {"source": "a", "destination": "b", "topics": {"include": [name]}}},
            }
        )
    )
    monkeypatch.setenv("STRAIT_LINKS_FILE", str(file))
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
    Admin(clusters.source.client_properties, "a").create([NewTopic(name, 2, 1)])
    producer = Producer(clusters.source.client_properties)
    for number in range(10):
        producer.produce(name, f"value {number}".encode(), f"key {number}".encode())
    assert producer.flush(30) == 0
    return name


def fire(trigger: HealthTrigger) -> dict:
    """What the trigger fires first."""

    async def first() -> dict:
        async for event in trigger.run():
            return event.payload
        raise AssertionError("it fired nothing")

    return asyncio.run(first())


def test_plan_changes_nothing_and_apply_creates_and_publishes_once(link, clusters):
    assert control.plan(link).startswith("plan 1")
    assert link not in Admin(clusters.destination.client_properties, "b").observe(lambda _: False).topics
    assert control.apply(link).startswith("plan 1: 2 partitions of 1 topics")
    assert control.apply(link).startswith("plan 1 stays as it is")


def test_an_invalid_variable_fails_plan_with_one_line_and_leaves_the_plan_in_force(link, monkeypatch):
    control.apply(link)
    monkeypatch.setenv(f"AIRFLOW_VAR_STRAIT_TOPICS_{link.upper()}", '{"include": 5}')
    with pytest.raises(AirflowFailException) as failed:
        control.plan(link)
    assert f"strait_topics_{link}: include: " in str(failed.value)
    assert "\n" not in str(failed.value)
    assert f"{link}: 0 records copied" in control.metrics(link)


def test_an_edit_is_noticed_while_it_is_watched_for_and_applied_unless_the_plan_is_frozen(link, clusters, monkeypatch):
    added = f"{link}-added"
    Admin(clusters.source.client_properties, "a").create([NewTopic(added, 1, 1)])
    variable = f"AIRFLOW_VAR_STRAIT_TOPICS_{link.upper()}"
    control.apply(link)
    trigger = HealthTrigger(link=link, until=time.time() + 3600)

    with after(3.0, monkeypatch.setenv, variable, json.dumps({"include": [link, added]})):
        assert fire(trigger) == {"troubles": [], "edited": True}
    assert "monitor DAG is paused" in control.follow_edit(link, frozen=True)
    assert control.plan(link).startswith("plan 2: ")

    with after(3.0, monkeypatch.setenv, variable, '{"include": 5}'):
        (error,) = fire(trigger).values()
    assert f"strait_topics_{link}: include: " in error["message"]
    assert not error["retriable"]
    still_wrong = HealthTrigger(link=link, until=time.time() + 6)
    assert fire(still_wrong) == {"troubles": [], "edited": False}

    with after(3.0, monkeypatch.delenv, variable):
        assert fire(trigger) == {"troubles": [], "edited": True}


@contextmanager
def after(seconds, call, *arguments):
    """Call it so much later, while the block goes on."""
    timer = threading.Timer(seconds, call, arguments)
    timer.start()
    try:
        yield
    finally:
        timer.join()


@pytest.mark.spark
def test_an_edit_is_applied_and_its_application_runs(link, clusters):
    try:
        assert control.follow_edit(link, frozen=False).startswith("plan 1: 2 partitions")
        assert launcher(Spark()).state(f"strait-{link}-default").state.alive
    finally:
        launcher(Spark()).stop(f"strait-{link}-default", grace_seconds=0)


def test_whoever_plans_without_airflow_leaves_the_variable_s_topics_in_force(link, clusters, tmp_path, monkeypatch):
    added = f"{link}-added"
    Admin(clusters.source.client_properties, "a").create([NewTopic(added, 1, 1)])
    monkeypatch.setenv(f"AIRFLOW_VAR_STRAIT_TOPICS_{link.upper()}", json.dumps({"include": [link, added]}))
    control.apply(link)
    file = ("-f", str(tmp_path / "links.yaml"))

    planned = strait("plan", link, *file)
    assert "stays as it is" in planned.stdout
    assert f"(plan 1), from Airflow Variable strait_topics_{link}; --from-file" in planned.stderr
    assert "stays as it is" in strait("apply", link, *file, "--yes").stdout
    shown = json.loads(strait("settings", link, *file, "-o", "json").stdout)
    assert shown["settings"]["topics"] == {"include": [link, added]}
    assert (shown["same_topics"], shown["same_others"]) == (False, True)

    cycles = Cycles(load_link(tmp_path / "links.yaml", link), link, 0.1)
    cycles.start()
    assert isinstance(cycles.results.get(timeout=60), Proposal)
    assert [cycles.results.get(timeout=60).plan.version for _ in range(2)] == [1, 1]
    assert cycles.topics_from == f"Airflow Variable strait_topics_{link}"

    shown = strait("failover", link, *file, "--dry-run", "--quiet", "1s", check=False)
    assert "3 of 3 partitions are not copied" in shown.stdout

    assert f"leaves    {added} 0" in strait("plan", link, *file, "--from-file").stdout
    assert control.plan(link).startswith("plan 1 stays as it is")
    strait("apply", link, *file, "--from-file")
    eventually(lambda: cycles.topics_from == "", what="`strait run` takes them from the file, too")
    cycles.stop(60)
    assert control.apply(link).startswith("plan 3: 3 partitions of 2 topics")


def strait(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("strait"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=check)


def test_without_a_plan_there_is_nothing_to_run_measure_or_worry_about(link):
    assert "no plan" in control.applications(link)
    assert "no plan" in control.metrics(link)
    assert fire(HealthTrigger(link=link, until=time.time())) == {"troubles": [], "edited": False}


@pytest.mark.spark
def test_a_standby_is_submitted_watched_and_ended(link, tmp_path):
    links_file = tmp_path / "links.yaml"
    raw = yaml.safe_load(links_file.read_text())
    raw["links"][link]["groups"] = {"default": {"standby": True}}
    links_file.write_text(yaml.safe_dump(raw))
    launch, names = launcher(Spark()), [f"strait-{link}-default", f"strait-{link}-default.standby"]
    control.apply(link)
    try:
        done = control.applications(link)
        assert [f"{name}: submitted" in done for name in names] == [True, True]
        launch.stop(names[1], grace_seconds=0)
        trigger = HealthTrigger(link=link, until=time.time() + 3600)
        (trouble,) = fire(trigger)["troubles"]
        assert trouble["reason"] == Reason.APPLICATION_DEAD
        assert f"{names[1]}: submitted: it ended" in control.restart(link, [trouble])
        shown = json.loads(strait("applications", link, "-f", str(links_file), "-o", "json").stdout)["applications"]
        assert [(one["name"], len(one["submissions"])) for one in shown] == [(names[0], 1), (names[1], 2)]
        assert "killed" in shown[1]["submissions"][1]["cause"]
        assert "killed" in strait("applications", link, "-f", str(links_file)).stdout

        del raw["links"][link]["groups"]
        links_file.write_text(yaml.safe_dump(raw))
        assert f"{names[1]}: ended" in control.applications(link)
        assert [launch.state(name).state.alive for name in names] == [True, False]
    finally:
        for name in names:
            launch.stop(name, grace_seconds=0)


@pytest.mark.spark
def test_an_application_is_kept_running_and_one_of_no_link_is_ended(link, caplog, tmp_path, monkeypatch):
    caplog.set_level(logging.INFO)
    launch = launcher(Spark())
    name = f"strait-{link}-default"
    control.apply(link)
    try:
        assert "submitted" in control.applications(link)
        first = launch.state(name)
        assert "it is" in control.applications(link)
        assert launch.state(name).id == first.id

        eventually(lambda: launch.state(name).state is State.RUNNING, what="it runs")
        trigger = HealthTrigger(link=link, until=time.time() + 3600)
        launch.stop(name, grace_seconds=0)
        (trouble,) = fire(trigger)["troubles"]
        assert trouble["reason"] == Reason.APPLICATION_DEAD

        caplog.clear()
        assert "submitted" in control.restart(link, [trouble])
        assert "submitting: it ended: " in caplog.text
        assert launch.state(name).id != first.id

        links_file = tmp_path / "links.yaml"
        raw = yaml.safe_load(links_file.read_text())
        links_file.write_text(yaml.safe_dump(raw | {"links": {"other": raw["links"][link]}}))
        control.apply("other")
        control.applications("other")
        assert not launch.state(name).state.alive
    finally:
        for application in launch.list():
            launch.stop(application.name)


def test_the_trigger_says_why_it_could_not_watch(link, clusters, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONN_STRAIT_B", '{"conn_type": "kafka", "extra": "{\\"no.such.property\\": \\"1\\"}"}')
    event = fire(HealthTrigger(link=link, until=time.time() + 3600))
    assert event["error"]["retriable"] is False
    assert "no.such.property" in event["error"]["message"]


def test_the_trigger_survives_being_stored_without_any_secret(link):
    trigger = HealthTrigger(link=link, until=123.0)
    path, arguments = trigger.serialize()
    assert path == "strait_airflow.triggers.HealthTrigger"
    assert HealthTrigger(**arguments).serialize() == (path, arguments)
    assert set(arguments) == {"link", "until"}


def test_a_failover_is_rehearsed_and_then_done_by_the_dag_task(link, clusters):
    """All that it takes is in the DAG's Params; a step that does not hold fails the task with one line."""
    asked = {"link": link, "kind": "planned", "dry_run": True, "fence": [], "quiet_seconds": 0.5, "timeout_minutes": 1}
    asked |= dict.fromkeys(("accept_inexact", "accept_tail", "include_moved", "even_if_source_answers"), False)
    asked["reason"] = "to see"
    control.apply(link)
    assert fail_over(asked, "me") == f"link {link}: dry run: would wait for, or fail at: copying, drain"
    with pytest.raises(AirflowFailException, match="2 of 2 partitions are not copied"):
        fail_over(asked | {"dry_run": False}, "me")
    assert "% of the steps hold" in rehearse(link)
    assert "dry run" in fail_over(asked | {"kind": "unplanned", "even_if_source_answers": True}, "me")
    done = fail_over(asked | {"kind": "unplanned", "even_if_source_answers": True, "dry_run": False}, "me")
    assert done.startswith(f"link {link}: unplanned failover")
    assert "done in" in done
