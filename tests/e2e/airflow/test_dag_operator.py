"""What an operator does with a link's DAG, and what tells that one is needed: red runs, notes and notifiers. The tests are
one story, told in order."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka import Producer

from strait.launch.base import State
from support.fixtures.airflow import OVER, Deployment, copies_more, joined
from support.fixtures.page import RUN
from support.fixtures.waiting import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.airflow]

KNOWN = "known since "
NOTIFIER = "support.fixtures.notifying.FileNotifier"


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("told") / "notes"


@pytest.fixture(scope="module")
def airflow(site, clusters, told) -> Iterator[Deployment]:
    more = {"alerts": {"on_failure": [{"notifier": NOTIFIER, "arguments": {"path": str(told)}}]}}
    ends = clusters.source, clusters.destination
    with joined(site.airflow, site.links_file, RUN, *ends, include=["orders", "payments"], more=more) as running:
        running.copy("orders", "payments")
        for topic in ("orders", "payments"):
            copies_more(clusters, topic)
        eventually(lambda: running.application().state is State.RUNNING, what="the application runs")
        running.runs_so_far()
        yield running


def new_runs(airflow, before: set[str]) -> list[dict]:
    """Those that are over, oldest first."""
    runs = [run for run in airflow.client.runs(airflow.monitor) if run["dag_run_id"] not in before]
    return [run for run in reversed(runs) if run["state"] in OVER]


def red(airflow, before: set[str], text: str) -> dict:
    def found():
        return next(
            (run for run in new_runs(airflow, before) if run["state"] == "failed" and text in run["note"]), None
        )

    return eventually(found, what=f"a red run with {text!r}", within_seconds=240)


def green(airflow, before: set[str]) -> dict:
    """The newest run, once it is green."""

    def found():
        runs = new_runs(airflow, before)
        return runs[-1] if runs and runs[-1]["state"] == "success" else None

    return eventually(found, what="a green run", within_seconds=240)


def told_times(told: Path) -> int:
    return told.read_text().count("\n---\n") if told.exists() else 0


def submission_of(airflow) -> str:
    """The run whose `submit` has submitted the application."""
    runs = [run["dag_run_id"] for run in airflow.client.runs(airflow.monitor)]
    return next(run for run in runs if airflow.client.task_states(airflow.monitor, run).get("submit[0]") == "success")


def test_the_graph_shows_which_application_was_submitted_and_that_it_replicates(airflow):
    first = airflow.client.runs(airflow.monitor)[-1]
    assert "first run of this DAG" in first["note"] and "done: " in first["note"]
    run = submission_of(airflow)
    states = airflow.client.task_states(airflow.monitor, run)
    assert {states[task] for task in ("monitor", "submit[0]", "healthy[0]", "metrics", "verdict")} == {"success"}
    assert "each of its slots reports" in airflow.client.task_log(airflow.monitor, run, "healthy[0]")
    assert airflow.client.map_names(airflow.monitor, run, "submit") == [f"strait-{RUN}-default"]
    assert airflow.client.map_names(airflow.monitor, run, "healthy") == [f"strait-{RUN}-default"]


def test_a_run_for_an_edit_skips_what_has_nothing_to_do_and_says_who_edited_what(airflow):
    before = airflow.runs_so_far()
    airflow.copy("orders", "payments", "clicks")
    run = green(airflow, before)
    identity = run["dag_run_id"]
    states = airflow.client.task_states(airflow.monitor, identity)
    assert states == dict.fromkeys(("monitor", "metrics", "verdict"), "success") | dict.fromkeys(
        ("submit", "healthy"), "skipped"
    )
    assert f"its settings were edited: Airflow Variable {airflow.variable}" in run["note"]
    assert "it selects now: +clicks" in run["note"]
    assert re.search(rf"Variable {airflow.variable} edited by admin at [0-9:]+ UTC", run["note"])
    assert "topics of its source" not in run["note"]
    assert "done: plan " in run["note"]
    assert workers(airflow, identity) == {"monitor", "verdict"}, "an edit costs two processes"
    log = airflow.client.task_log(airflow.monitor, identity, "monitor", last_try(airflow, identity))
    frame = ("::", "Done. Returned value", "Pushing xcom")  # Airflow's
    ours = [line for line in log.splitlines() if not any(words in line for words in frame)]
    assert "done: plan " in ours[-1], "the last line is the result"
    assert len(new_runs(airflow, before)) == 1, "one edit is one run"


def last_try(airflow, run: str, task: str = "monitor") -> int:
    """On a busy machine a worker may not begin; Airflow counts that as an attempt, which has no log."""
    return airflow.client.tries(airflow.monitor, run, task)[-1]


def workers(airflow, run: str) -> set[str]:
    """The tasks of a run that a worker has run."""
    found = set()
    for task in airflow.client.task_states(airflow.monitor, run):
        for attempt in airflow.client.tries(airflow.monitor, run, task):
            log = airflow.client.task_log(airflow.monitor, run, task, attempt)
            found |= {task} if "DAG bundles loaded" in log else set()
    return found


def test_the_log_of_every_attempt_of_every_task_can_be_read(airflow):
    for run in airflow.client.runs(airflow.monitor):
        identity = run["dag_run_id"]
        for task in airflow.client.task_states(airflow.monitor, identity):
            for attempt in airflow.client.tries(airflow.monitor, identity, task):
                log = airflow.client.task_log(airflow.monitor, identity, task, attempt)
                assert "done: " in log or "needs an operator: " in log, (identity, task, attempt, log)


def test_clearing_one_submit_restarts_that_application_once_and_clearing_its_run_does_not(airflow):
    run, first = submission_of(airflow), airflow.application()
    before = airflow.runs_so_far()
    airflow.client.clear(airflow.monitor, run, "submit[0]")
    eventually(lambda: airflow.application().id != first.id, what="another submission", within_seconds=120)
    second = airflow.application()
    eventually(lambda: airflow.client.run(airflow.monitor, run)["state"] in OVER, what="the end of the cleared run")
    assert airflow.client.task_states(airflow.monitor, run)["healthy[0]"] == "success"
    assert "the task was cleared" in airflow.client.task_log(airflow.monitor, run, "submit[0]", attempt=2)
    airflow.client.clear(airflow.monitor, run)
    time.sleep(5)
    eventually(lambda: airflow.client.run(airflow.monitor, run)["state"] in OVER, what="the end of the cleared run")
    assert airflow.application().id == second.id
    assert [one["note"] for one in new_runs(airflow, before) if "application_dead" in one["note"]] == []


def test_runs_by_hand_that_have_nothing_new_to_do_end_in_one_line(airflow):
    runs = [airflow.client.trigger(airflow.monitor) for _ in range(4)]
    eventually(
        lambda: all(airflow.client.run(airflow.monitor, run)["state"] in OVER for run in runs),
        what="the runs",
        within_seconds=180,
    )
    logs = [airflow.client.task_log(airflow.monitor, run, "monitor") for run in runs]
    assert sum("nothing new: a run has planned" in log for log in logs) >= 1
    notes = [airflow.client.run(airflow.monitor, run)["note"] for run in runs]
    assert all("triggered by admin" in note for note in notes)


def test_a_backfill_is_refused_and_the_scheduler_lives(airflow, site):
    body = {"dag_id": airflow.monitor, "from_date": "2026-01-01T00:00:00Z", "to_date": "2026-01-01T20:00:00Z"}
    reply = site.airflows("POST", "backfills", site.token(), body)
    assert reply.status_code in (400, 422), reply.text
    assert "backfill" in reply.text
    assert airflow.run_monitor()["state"] == "success"


@pytest.mark.parametrize("variable", ["{}", '{"include": ["odrers"]}'])
def test_a_variable_that_would_empty_the_link_is_one_red_run_and_copying_goes_on(airflow, clusters, variable, told):
    before, called = airflow.runs_so_far(), told_times(told)
    airflow.client.set_variable(airflow.variable, variable)
    run = red(airflow, before, f"Airflow Variable {airflow.variable}: selects no topic")
    assert run["note"].startswith("needs an operator:\n- Airflow Variable")
    copies_more(clusters, "orders")
    eventually(lambda: told_times(told) > called, what="a call of the notifier")
    airflow.copy("orders", "payments", "clicks")
    green(airflow, before)
    assert len([one for one in new_runs(airflow, before) if one["state"] == "failed"]) == 1
    assert told_times(told) == called + 1


def test_a_name_in_include_that_the_source_lacks_is_a_red_run(airflow):
    before = airflow.runs_so_far()
    airflow.copy("orders", "payments", "clicks", "odrers")
    red(airflow, before, "- topic odrers: source_missing: ")
    airflow.copy("orders", "payments", "clicks")
    green(airflow, before)


def test_a_links_file_that_is_no_yaml_keeps_the_dags_and_is_one_red_run_with_its_place(airflow, site, clusters):
    before, right = airflow.runs_so_far(), site.links_file.read_text()
    dags = {dag["dag_id"] for dag in airflow.client.dags()}
    site.links_file.write_text(f"{right}\n  bad: [\n")
    try:
        run = red(airflow, before, "is neither YAML nor JSON")
        assert re.search(r"line \d+, column \d+", run["note"])
        time.sleep(45)  # the DAG processor parses the file every 30 s
        assert {dag["dag_id"] for dag in airflow.client.dags()} == dags
        assert airflow.client.import_errors() == []
        copies_more(clusters, "orders")
    finally:
        site.links_file.write_text(right)
    green(airflow, before)
    assert len([one for one in new_runs(airflow, before) if one["state"] == "failed"]) == 1


def test_a_halted_partition_is_one_red_run_one_call_and_a_green_run_when_it_is_over(airflow, site, clusters, told):
    before, called = airflow.runs_so_far(), told_times(told)
    producer = Producer(clusters.destination.client_properties)
    producer.produce("payments", b"of another producer", partition=0)
    assert producer.flush(30) == 0
    run = red(airflow, before, "topic payments 0: foreign_writer: ")
    assert "run because: an operator is needed" in run["note"].splitlines()
    assert "needs an operator: topic payments" in airflow.client.task_log(airflow.monitor, run["dag_run_id"], "verdict")
    eventually(lambda: told_times(told) > called, what="a call of the notifier")
    assert "topic payments 0: foreign_writer" in told.read_text()

    def on_page():
        return site.get(f"api/v1/links/{RUN}", site.token()).json().get("needs")

    (need,) = eventually(on_page, what="it is on the page")
    assert need["text"].startswith("topic payments 0: foreign_writer")

    later = airflow.run_monitor()
    assert (later["state"], later["note"].startswith(KNOWN)) == ("success", True)
    assert "- topic payments 0: foreign_writer: " in later["note"]
    assert "triggered by admin" in later["note"]
    time.sleep(60)  # another look of the watch
    runs = new_runs(airflow, before)
    by_watch = [one for one in runs if not one["dag_run_id"].startswith(("manual", "scheduled"))]
    assert len(by_watch) == 1, "an incident that lasts wakes no run"
    assert [one["state"] for one in runs].count("failed") == 1, "one incident is one red run"
    assert told_times(told) == called + 1

    rules = [{"match": "payments", "on_foreign": "continue"}]
    topics = {"include": ["orders", "payments", "clicks"], "rules": rules}
    airflow.client.set_variable(airflow.variable, json.dumps(topics))
    green(airflow, before)
    copies_more(clusters, "payments")


def test_an_application_that_dies_again_and_again_is_red_from_the_third_time_on(airflow, told):
    before, called = airflow.runs_so_far(), told_times(told)
    for _ in range(3):
        dead = airflow.application()
        eventually(lambda: airflow.application_pids(), what="its processes")
        airflow.kill_application()
        eventually(lambda dead=dead: airflow.application().id != dead.id, what="another submission", within_seconds=180)
    run = red(airflow, before, f"application strait-{RUN}-default exited 3 times ")
    assert "within an hour, last: killed" in run["note"]
    assert run["note"].count("- application ") == 1
    assert airflow.client.task_states(airflow.monitor, run["dag_run_id"])["submit[0]"] == "success"
    eventually(lambda: told_times(told) == called + 1, what="one call of the notifier")


def test_heartbeats_of_airflow_s_parts_are_on_the_page(site):
    found = site.get("api/v1/airflow", site.token()).json()["components"]
    assert {one["name"] for one in found} >= {"scheduler", "triggerer"}
    assert all(one["healthy"] and one["age_seconds"] < 60 for one in found if one["name"] in ("scheduler", "triggerer"))
    with httpx.Client(trust_env=False) as client:
        assert client.get(f"{site.url}api/v1/airflow").status_code == 401
