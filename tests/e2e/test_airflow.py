"""Airflow dies, comes back over an older database, and runs twice, while Spark copies. The tests are one story, told in
order; tests/e2e/airflow/test_dag.py has what a link does in an Airflow that stays."""

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from strait.errors import SetupError
from support.fixtures.airflow import (
    APPROVAL,
    ASKED,
    MONITOR,
    PARTITIONS,
    VARIABLE,
    Deployment,
    airflow_over,
    copies_more,
    deployment,
    launch,
)
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_equal, read_all

pytestmark = [pytest.mark.e2e, pytest.mark.airflow]


@pytest.fixture(scope="module")
def clusters(own_clusters):
    """Other modules copy topics of these names, by links of their own."""
    return own_clusters


@pytest.fixture(scope="module")
def airflow(clusters, tmp_path_factory) -> Iterator[Deployment]:
    with deployment(
        tmp_path_factory.mktemp("airflow"), clusters.source, clusters.destination, include=list(PARTITIONS)
    ) as running:
        running.copy(*PARTITIONS)
        for topic in PARTITIONS:
            copies_more(clusters, topic)
        yield running


READING_SECONDS = 5.0
"""A person reads before he answers. Airflow counts on it: of an answer that comes before its scheduler has heard that
the task waits, it makes a failed task. The next run asks again."""


def asking(airflow) -> list[str]:
    """The runs that wait for an answer."""
    runs = (run["dag_run_id"] for run in airflow.client.runs(APPROVAL) if run["state"] == "running")
    return [run for run in runs if airflow.client.task_states(APPROVAL, run)["ask"] == "awaiting_input"]


def asked(airflow) -> str:
    """The run that waits for an answer."""
    return eventually(lambda: next(iter(asking(airflow)), None), what="a question", within_seconds=180)


def answer(airflow, choice: str) -> str:
    """Answer until it counts: a failed task is tried again, and asks again. Returns the run."""
    answered: set[str] = set()

    def once() -> str | None:
        for run in asking(airflow):
            time.sleep(READING_SECONDS)
            with contextlib.suppress(SetupError):  # it was answered a moment ago, and is still being taken up
                airflow.client.answer(APPROVAL, run, "ask", choice)
            answered.add(run)
        ended = (run["dag_run_id"] for run in airflow.client.runs(APPROVAL) if run["state"] == "success")
        return next((run for run in ended if run in answered), None)

    return eventually(once, what=f"a run that ended well with {choice}", within_seconds=240)


def test_a_link_that_wants_to_be_asked_does_what_a_person_has_approved_and_nothing_before(airflow, clusters):
    airflow.client.unpause(APPROVAL)
    question = airflow.client.question(APPROVAL, asked(airflow), "ask")
    assert "+ copies    orders: to asked.orders, from earliest" in question["body"]
    assert "rejected by" in airflow.client.task_log(APPROVAL, answer(airflow, "Reject"), "act")
    airflow.client.set_variable(f"strait_rejected_{ASKED}", "{}")
    asked(airflow)
    there = AdminClient(clusters.destination.client_properties)
    assert not [topic for topic in there.list_topics(timeout=30).topics if topic.startswith("asked.")]
    answer(airflow, "Approve")
    made = [topic for topic in there.list_topics(timeout=30).topics if topic.startswith("asked.")]
    assert sorted(made) == sorted(f"asked.{topic}" for topic in PARTITIONS)


def submissions(airflow) -> int:
    return len(airflow.launcher.history(airflow.application().name))


def test_killed_and_started_again_over_an_older_database_airflow_goes_on_and_copying_never_stopped(airflow, clusters):
    airflow.until_spark_runs()
    before, pids, submitted = airflow.runs_so_far(), airflow.application_pids(), submissions(airflow)
    database = airflow.airflow.home / "airflow.db"
    with closing(sqlite3.connect(database)) as now, closing(sqlite3.connect(database.with_suffix(".copy"))) as copy:
        now.backup(copy)
    airflow.copy("orders", "payments")
    eventually(lambda: airflow.ended_since(before), what="a run for an edit that the copy does not know")
    airflow.kill("triggerer")
    airflow.kill("scheduler")
    airflow.airflow.stop()
    copies_more(clusters, "orders")
    for log in database.parent.glob("airflow.db-*"):
        log.unlink()
    database.with_suffix(".copy").rename(database)
    launch(airflow.airflow)
    airflow.airflow.wait_until_healthy()
    airflow = replace(airflow, client=airflow.airflow.client())
    run = eventually(lambda: airflow.ended_since(before), what="a run for what the older database lacks")
    assert run["state"] == "failed"
    assert "its database may be restored from an older copy" in run["note"]
    assert "run because: work to do: plan " in run["note"] or run["note"].endswith("hourly run"), run["note"]
    by_hand = airflow.run_monitor()
    assert by_hand["state"] == "success", (
        f"triggered by a person, it uses the topics of that database: {by_hand['note']}"
    )
    copies_more(clusters, "clicks")
    assert airflow.application_pids() == pids
    assert submissions(airflow) == submitted
    airflow.client.close()


def test_two_airflows_over_one_links_file_submit_an_application_once(airflow, clusters, tmp_path):
    environment = airflow.airflow.environment
    second = airflow_over(
        Path(environment["STRAIT_LINKS_FILE"]), Path(environment["STRAIT_HOME"]), tmp_path / "airflow"
    )
    client = airflow.airflow.client()
    launch(second)
    try:
        second.wait_until_healthy()
        other = second.client()
        other.set_variable(VARIABLE, json.dumps({"include": list(PARTITIONS)}))
        submitted = submissions(airflow)
        airflow.configure(other)
        eventually(lambda: [run for run in other.runs(MONITOR) if run["state"] == "success"], what="its first run")
        assert submissions(airflow) == submitted
        both = {one: {run["dag_run_id"] for run in one.runs(MONITOR)} for one in (client, other)}
        airflow.kill_application()

        def new_runs() -> list[str]:
            return [
                run["state"]
                for one, known in both.items()
                for run in one.runs(MONITOR)
                if run["dag_run_id"] not in known
            ]

        eventually(lambda: "success" in new_runs(), what="a run for the application that ended")
        time.sleep(20)  # the other one has seen it in the same second, or not at all
        eventually(lambda: {"queued", "running"}.isdisjoint(new_runs()), what="whatever the other one does is done")
        assert submissions(airflow) == submitted + 1
        copies_more(clusters, "orders")
        other.close()
    finally:
        second.stop()
        client.close()


def test_in_the_end_the_copies_equal_their_sources_record_by_record(airflow, clusters):
    airflow.stop_writing()
    for topic, partitions in PARTITIONS.items():
        source = ends(clusters.source, topic, partitions)
        eventually(
            lambda topic=topic, partitions=partitions, source=source: (
                ends(clusters.destination, topic, partitions) == source
            ),
            what=f"{topic}: as many records as its source",
            within_seconds=180,
        )
        assert_equal(read_all(clusters.source, topic, partitions), read_all(clusters.destination, topic, partitions))
