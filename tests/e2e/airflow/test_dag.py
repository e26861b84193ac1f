"""A link in Airflow, run by Spark: topics, a wrong edit, a killed application. The tests are one story, told in order."""

import time
from collections.abc import Iterator

import pytest

from support.fixtures.airflow import PARTITIONS, Deployment, copied, copies_more, joined
from support.fixtures.page import RUN
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends

pytestmark = [pytest.mark.e2e, pytest.mark.airflow, pytest.mark.core]


@pytest.fixture(scope="module")
def airflow(site, clusters) -> Iterator[Deployment]:
    include = ["orders", "payments"]
    with joined(site.airflow, site.links_file, RUN, clusters.source, clusters.destination, include=include) as running:
        yield running


def test_missing_topics_are_created_with_the_sources_partitions_and_copied(airflow, clusters):
    for topic in ("orders", "payments"):
        copies_more(clusters, topic)
        # Its partitions are copied by several slots, which begin one after another.
        eventually(
            lambda topic=topic: all(end > 0 for end in ends(clusters.destination, topic, PARTITIONS[topic])),
            what=f"{topic}: records in each of its {PARTITIONS[topic]} partitions",
            within_seconds=180,
        )


def test_a_topic_added_in_the_variable_is_copied_by_the_application_that_runs(airflow, clusters):
    airflow.until_spark_runs()
    pids = airflow.application_pids()
    assert copied(clusters, "clicks") == 0
    airflow.copy("orders", "payments", "clicks")
    copies_more(clusters, "clicks")
    assert airflow.application_pids() == pids


def test_an_invalid_variable_fails_one_run_with_one_line_while_copying_goes_on(airflow, clusters):
    before = airflow.runs_so_far()
    airflow.client.set_variable(airflow.variable, '{"include": ["orders"], "exclud": ["pay.*"]}')
    run = eventually(lambda: airflow.ended_since(before), what="a run for the edit", within_seconds=60)
    assert run["state"] == "failed"
    assert run["note"].startswith(f"needs an operator:\n- Airflow Variable {airflow.variable}: exclud: unknown key")
    (line,) = airflow.client.task_errors(airflow.monitor, run["dag_run_id"], "verdict")
    assert f"Airflow Variable {airflow.variable}: exclud: unknown key; did you mean 'exclude'?" in line
    for topic in PARTITIONS:
        copies_more(clusters, topic)
    time.sleep(30)
    begun = {run["dag_run_id"] for run in airflow.client.runs(airflow.monitor)} - before
    assert len([run for run in begun if not run.startswith("scheduled")]) == 1, f"it is tried once: {begun}"
    airflow.copy(*PARTITIONS)
    eventually(
        lambda: airflow.client.runs(airflow.monitor)[0]["state"] == "success",
        what="a run that ends well",
        within_seconds=60,
    )


def test_a_killed_application_is_submitted_again_and_the_task_says_why_it_ended(airflow, clusters):
    first = airflow.application()
    airflow.kill_application()
    eventually(lambda: airflow.application().id != first.id, what="another submission", within_seconds=180)
    for topic in PARTITIONS:
        copies_more(clusters, topic)
    eventually(
        lambda: "submitting: it ended: killed" in airflow.logs(airflow.monitor, "submit[0]"),
        what="the cause of death in the log of the task that submitted it again",
    )


def test_metrics_has_a_line_for_each_topic(airflow):
    run = airflow.run_monitor()
    log = airflow.client.task_log(airflow.monitor, run["dag_run_id"], "metrics")
    assert all(f"{topic}: " in log and "records copied" in log for topic in PARTITIONS)
