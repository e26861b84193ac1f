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
from strait.errors import StraitError
from strait.kafka.admin import Admin, NewTopic
from strait.launch.applications import RESTART_LIMIT
from strait.launch.base import State
from strait.planning.plan.planner import Proposal
from strait.reasons import Reason
from strait.waiting import unix_ms
from strait_airflow import control, settings
from strait_airflow.applications import launcher
from strait_airflow.errors import failure_of
from strait_airflow.failing_over import fail_over, rehearse
from strait_airflow.noticing import ACTED, JUDGED, Acted, Judged
from strait_airflow.steps import Run
from strait_airflow.submitting import submit
from strait_airflow.triggers import LinkTrigger
from strait_airflow.verdict import verdict_of
from support.fixtures.waiting import eventually
from support.spark.idle import idle_spark_submit

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
                "links": {
                    name: {
                        "source": "a",
                        "destination": "b",
                        "topics": {"include": [name]},
                        "spark": {"head_start": False},  # the stand-in for Spark copies nothing
                    }
                },
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


class Store(dict):
    """The state of a link's asset, without Airflow's database."""

    set = dict.__setitem__

    def get(self, key):
        return json.loads(json.dumps(super().get(key)))  # as it comes out of the database


def watch(link: str, store: Store) -> LinkTrigger:
    trigger = LinkTrigger(link=link)
    trigger.asset_state_store = store
    return trigger


def fire(trigger: LinkTrigger, within_seconds: float = 60.0) -> dict | None:
    """What the trigger fires first; None: nothing in that time."""

    async def first() -> dict:
        async for event in trigger.run():
            return event.payload
        raise AssertionError("it ended")

    async def in_time() -> dict | None:
        try:
            return await asyncio.wait_for(first(), within_seconds)
        except TimeoutError:
            return None

    return asyncio.run(in_time())


TOLD = {"reasons": [], "plan": False, "silent": [], "at_ms": 0, "seen": {}}


def act(link: str, notices, store: Store, *, restart: str = "", by: str = "Airflow") -> str:
    """A run of the link's DAG up to its verdict: the work that was done, or its failures."""
    run = Run(uuid.uuid4().hex, unix_ms(), by=by, manual=not notices)
    found = control.monitor(link, notices, store, run, restart=restart)
    lines, failures = [found.done], list(found.failures)
    for asked in found.due:
        try:
            lines.append(submit(link, asked, restart=asked["restart"])["line"])
        except StraitError as error:
            failures.append(failure_of(error, link))
    judged = Judged.of(store.get(JUDGED))
    verdict = verdict_of(found.planning, failures, (), judged, run.id, unix_ms(), planned=found.planned)
    store.set(JUDGED, verdict.judged.data())
    if verdict.lines:
        raise AirflowFailException("; ".join(verdict.lines))
    return "; ".join(lines)


def applications(link: str) -> str:
    """Make the applications match the plan."""
    return act(link, [TOLD], Store())


def test_work_that_was_done_is_news_when_it_is_there_again(link, spark_submit_is_a_stand_in):
    store = Store({ACTED: acted_upon_all(link)})
    told = {"reasons": [], "plan": True, "silent": [], "at_ms": 0, "seen": {"work": "d1"}}
    act(link, [told], store)
    assert "work" not in store.get(ACTED)["seen"]


@pytest.mark.core
def test_apply_creates_and_publishes_once(link, clusters):
    assert control.apply(link)[0].startswith("plan 1: 2 partitions of 1 topic")
    assert control.apply(link)[0].startswith("plan 1 stays as it is")


@pytest.mark.core
def test_a_run_does_all_there_is_to_do_and_then_the_watch_is_quiet(link, spark_submit_is_a_stand_in, caplog):
    caplog.set_level(logging.INFO, logger="strait_airflow")
    store = Store()
    first = fire(watch(link, store))
    assert first["plan"]
    assert first["reasons"] == ["no run has acted upon this link yet"]
    assert act(link, [first], store).startswith("plan 1: 2 partitions of 1 topic")
    lines = [record.getMessage() for record in caplog.records if record.name == "strait_airflow.control"]
    assert len(lines) == len(set(lines)), "each line once"
    assert fire(watch(link, store), within_seconds=8) is None
    assert launcher(Spark()).state(f"strait-{link}-default").state.alive


def test_what_changed_while_nobody_watched_is_noticed_by_the_next_watch(link, clusters, monkeypatch):
    store = Store()
    act(link, [fire(watch(link, store))], store)
    added = f"{link}-added"
    Admin(clusters.source.client_properties, "a").create([NewTopic(added, 1, 1)])
    variable = f"AIRFLOW_VAR_STRAIT_TOPICS_{link.upper()}"
    monkeypatch.setenv(variable, json.dumps({"include": [link, added]}))
    found = fire(watch(link, store))
    assert "its settings were edited" in found["reasons"]
    assert act(link, [found], store).startswith("plan 2: 3 partitions of 2 topics")


@pytest.fixture
def spark_submit_is_a_stand_in(tmp_path, monkeypatch):
    """Applications that run and do nothing."""
    stand_in = idle_spark_submit(tmp_path / "spark" / "bin" / "spark-submit")
    monkeypatch.setattr("strait.launch.local.find_spark_submit", lambda: stand_in)
    yield
    for application in launcher(Spark()).list():
        launcher(Spark()).stop(application.name, grace_seconds=0)


def test_a_new_topic_and_more_partitions_of_the_source_wake_a_run_and_other_topics_do_not(
    link, clusters, monkeypatch, spark_submit_is_a_stand_in
):
    store = Store()
    monkeypatch.setenv(f"AIRFLOW_VAR_STRAIT_TOPICS_{link.upper()}", json.dumps({"regex": [f"{link}.*"]}))
    act(link, [fire(watch(link, store))], store)
    source = Admin(clusters.source.client_properties, "a")
    source.create([NewTopic(f"other-{link}", 1, 1)])
    assert fire(watch(link, store), within_seconds=6) is None
    with after(4.0, source.create, [NewTopic(f"{link}-new", 1, 1)]):
        found = fire(watch(link, store))
    assert found["reasons"] == [f"topics of its source: +{link}-new"]
    assert act(link, [found], store).startswith("plan 2: 3 partitions of 2 topics")
    with after(4.0, source.grow_each, {f"{link}-new": 3}):
        found = fire(watch(link, store))
    assert found["reasons"] == [f"topics of its source: {link}-new 1 to 3 partitions"]
    assert act(link, [found], store).startswith("plan 3: 5 partitions of 2 topics")


@pytest.mark.core
def test_a_wrong_edit_fails_one_run_with_one_line_and_only_another_edit_wakes_the_next(
    link, monkeypatch, spark_submit_is_a_stand_in
):
    store, variable = Store(), f"AIRFLOW_VAR_STRAIT_TOPICS_{link.upper()}"
    act(link, [fire(watch(link, store))], store)
    monkeypatch.setenv(variable, '{"include": 5}')
    found = fire(watch(link, store))
    with pytest.raises(AirflowFailException) as failed:
        act(link, [found], store)
    assert f"strait_topics_{link}: include: " in str(failed.value)
    assert "\n" not in str(failed.value)
    assert store[ACTED]["failed"] == "final"
    assert launcher(Spark()).state(f"strait-{link}-default").state.alive, "what needs no new plan was done"
    assert fire(watch(link, store), within_seconds=8) is None
    assert f"{link}: 0 records copied" in control.metrics(link)[0]
    monkeypatch.delenv(variable)
    assert fire(watch(link, store))["reasons"] == ["its settings were edited"]


def test_settings_that_would_empty_the_link_fail_one_run_and_what_is_copied_stays(
    link, monkeypatch, spark_submit_is_a_stand_in
):
    store, variable = Store(), f"AIRFLOW_VAR_STRAIT_TOPICS_{link.upper()}"
    act(link, [fire(watch(link, store))], store)
    for emptied in ("{}", json.dumps({"include": [f"{link}x"]})):
        monkeypatch.setenv(variable, emptied)
        with pytest.raises(
            AirflowFailException, match=f"Airflow Variable strait_topics_{link}: selects no topic, so topic"
        ):
            act(link, [fire(watch(link, store))], store)
        assert store[ACTED]["failed"] == "final"
    monkeypatch.setenv(variable, '{"allow_empty": true}')
    assert "plan 2: 0 partitions of 0 topics" in act(link, [fire(watch(link, store))], store)


def test_a_database_of_yesterday_does_not_change_the_topics_until_a_person_confirms(
    link, clusters, monkeypatch, spark_submit_is_a_stand_in
):
    store, variable = Store(), f"AIRFLOW_VAR_STRAIT_TOPICS_{link.upper()}"
    Admin(clusters.source.client_properties, "a").create([NewTopic(f"{link}-added", 1, 1)])
    monkeypatch.setenv(variable, json.dumps({"include": [link]}))
    act(link, [fire(watch(link, store))], store)
    old = json.loads(json.dumps(store))
    monkeypatch.setenv(variable, json.dumps({"include": [link, f"{link}-added"]}))
    assert "plan 2: 3 partitions" in act(link, [fire(watch(link, store))], store)

    restored = Store(old)
    monkeypatch.setenv(variable, json.dumps({"include": [link]}))
    work = {"reasons": [], "plan": True, "silent": [], "at_ms": 0, "seen": {"work": "x"}}
    for _ in range(2):
        with pytest.raises(AirflowFailException, match=r"plan 2 of .* this Airflow does not know.*trigger this DAG"):
            act(link, [work], restored)
    assert "plan 3: 2 partitions" in act(link, [], restored), "triggered by a person"
    assert "stays as it is" in act(link, [work], restored)


def test_a_run_that_was_asked_for_before_another_planned_ends_in_one_line(link, spark_submit_is_a_stand_in):
    store, asked = Store(), Run("r0", unix_ms(), manual=True)
    act(link, [], store)
    found = control.monitor(link, [], store, asked)
    assert (found.due, found.measure) == ([], False)
    assert found.done.startswith("nothing new: ")


def test_a_restart_is_done_once_though_its_run_is_cleared_weeks_later(link, caplog, spark_submit_is_a_stand_in):
    caplog.set_level(logging.INFO)
    store, name = Store(), f"strait-{link}-default"
    act(link, [], store)
    first, wanted = launcher(Spark()).state(name), Run("r1", unix_ms(), by="ann", manual=True)
    (asked,) = control.monitor(link, [], store, wanted, restart="default").due
    submit(link, asked, restart=asked["restart"])
    second = launcher(Spark()).state(name)
    assert second.id != first.id
    assert control.monitor(link, [], store, wanted._replace(cleared=1), restart="default").due == []
    assert "restarted already, at" in caplog.text
    assert launcher(Spark()).state(name).id == second.id


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
        assert act(link, [], Store()).startswith("plan 1: 2 partitions")
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
    assert control.apply(link)[0].startswith("plan 1 stays as it is")
    strait("apply", link, *file, "--from-file")
    eventually(lambda: cycles.topics_from == "", what="`strait run` takes them from the file, too")
    cycles.stop(60)
    assert control.apply(link)[0].startswith("plan 3: 3 partitions of 2 topics")


def strait(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("strait"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=check)


def test_without_a_plan_there_is_nothing_to_run_or_measure(link):
    assert "no application needs an action" in applications(link)
    assert "no plan" in control.metrics(link)[0]


@pytest.mark.spark
def test_a_standby_is_submitted_watched_and_ended(link, tmp_path):
    links_file = tmp_path / "links.yaml"
    raw = yaml.safe_load(links_file.read_text())
    raw["links"][link]["groups"] = {"default": {"standby": True}}
    links_file.write_text(yaml.safe_dump(raw))
    launch, names = launcher(Spark()), [f"strait-{link}-default", f"strait-{link}-default.standby"]
    control.apply(link)
    try:
        done = applications(link)
        assert [f"{name}: submitted" in done for name in names] == [True, True]
        launch.stop(names[1], grace_seconds=0)
        store = Store({ACTED: acted_upon_all(link)})
        found = fire(watch(link, store))
        (reason,) = found["reasons"]
        assert Reason.APPLICATION_DEAD in reason
        assert f"{names[1]}: submitted: it ended" in act(link, [found], store)
        shown = json.loads(strait("applications", link, "-f", str(links_file), "-o", "json").stdout)["applications"]
        assert [(one["name"], len(one["submissions"])) for one in shown] == [(names[0], 1), (names[1], 2)]
        assert "killed" in shown[1]["submissions"][1]["cause"]
        assert "killed" in strait("applications", link, "-f", str(links_file)).stdout

        del raw["links"][link]["groups"]
        links_file.write_text(yaml.safe_dump(raw))
        assert f"{names[1]}: ended" in applications(link)
        assert [launch.state(name).state.alive for name in names] == [True, False]

        before = launch.state(names[0])
        told = {"reasons": [], "plan": False, "seen": {}, "silent": ["default"]}
        act(link, [told | {"at_ms": before.submitted_at_ms - 1}], store)
        assert launch.state(names[0]).id == before.id, "what did not report was another one"
        act(link, [told | {"at_ms": time.time_ns() // 1_000_000}, told | {"silent": [], "at_ms": 1}], store)
        assert launch.state(names[0]).id == before.id, "the newest look says that it reports"
        act(link, [told | {"at_ms": time.time_ns() // 1_000_000}], store)
        assert launch.state(names[0]).id != before.id
    finally:
        for name in names:
            launch.stop(name, grace_seconds=0)


@pytest.mark.core
@pytest.mark.spark
def test_an_application_is_kept_running_and_one_of_no_link_is_ended(link, caplog, tmp_path, monkeypatch):
    caplog.set_level(logging.INFO)
    launch = launcher(Spark())
    name = f"strait-{link}-default"
    control.apply(link)
    try:
        assert "submitted" in applications(link)
        first = launch.state(name)
        assert "no application needs an action" in applications(link)
        assert launch.state(name).id == first.id

        eventually(lambda: launch.state(name).state is State.RUNNING, what="it runs")
        store = Store({ACTED: acted_upon_all(link)})
        launch.stop(name, grace_seconds=0)
        found = fire(watch(link, store))
        (reason,) = found["reasons"]
        assert Reason.APPLICATION_DEAD in reason
        assert not found["plan"], "to start an application anew needs no new plan"

        caplog.clear()
        assert "submitted" in act(link, [found], store)
        assert "submitting: it ended: " in caplog.text
        assert launch.state(name).id != first.id

        links_file = tmp_path / "links.yaml"
        raw = yaml.safe_load(links_file.read_text())
        links_file.write_text(yaml.safe_dump(raw | {"links": {"other": raw["links"][link]}}))
        control.apply("other")
        applications("other")
        assert not launch.state(name).state.alive
    finally:
        for application in launch.list():
            launch.stop(application.name)


def test_an_application_is_started_anew_when_somebody_asks_however_often_it_has_ended(
    link, spark_submit_is_a_stand_in, caplog
):
    caplog.set_level(logging.INFO)
    store, launch, name = Store(), launcher(Spark()), f"strait-{link}-default"
    told = TOLD
    control.apply(link)
    act(link, [told], store)
    first = launch.state(name)
    assert "submitted" in act(link, [], store, restart="default", by="ann")
    assert "ann wants it to restart" in caplog.text
    assert launch.state(name).id != first.id
    with pytest.raises(AirflowFailException, match="its plan has no task group 'defaul'; did you mean 'default'"):
        act(link, [], store, restart="defaul", by="ann")

    def ends_each_time() -> None:
        for _ in range(2 * RESTART_LIMIT):
            launch.stop(name, grace_seconds=0)
            applications(link)

    ends_each_time()
    assert "not submitted before" in caplog.text
    assert Acted.of(store.get(ACTED)).held == {}
    assert not launch.state(name).state.alive
    assert "submitted" in act(link, [], store, restart="default", by="ann")
    assert launch.state(name).state.alive


def acted_upon_all(link: str) -> dict:
    """As after a run for all that a watch finds first."""
    return {"seen": fire(watch(link, Store()))["seen"], "failed": ""}


def test_a_cluster_that_cannot_be_asked_is_said_and_tried_again(link, clusters, monkeypatch):
    monkeypatch.setattr(settings, "SHARED_SECONDS", 0.0)
    store = Store({ACTED: acted_upon_all(link)})
    monkeypatch.setenv(
        "AIRFLOW_CONN_STRAIT_B", '{"conn_type": "kafka", "extra": "{\\"bootstrap.servers\\": \\"127.0.0.1:1\\"}"}'
    )
    found = fire(watch(link, store))
    assert any("cluster b: " in reason for reason in found["reasons"]), found["reasons"]
    with pytest.raises(
        AirflowFailException, match=r"cluster b: .*; its properties come from Airflow Connection strait_b$"
    ):
        act(link, [found], store)
    assert store[ACTED]["failed"] == "retriable"
    monkeypatch.delenv("AIRFLOW_CONN_STRAIT_B")
    assert "its destination can be read again" in fire(watch(link, store))["reasons"]


def test_a_failover_is_rehearsed_and_then_done_by_the_dag_task(link, clusters):
    """All that it takes is in the DAG's Params; a step that does not hold fails the task with one line."""
    asked = {"link": link, "kind": "planned", "dry_run": True, "fence": [], "quiet_seconds": 0.5, "timeout_minutes": 1}
    asked |= dict.fromkeys(
        ("accept_inexact", "accept_tail", "accept_transformed", "include_moved", "even_if_source_answers", "unfence"),
        False,
    )
    asked |= {"reason": "to see", "topics": [], "groups": []}
    control.apply(link)
    with pytest.raises(AirflowFailException, match="copies no topic for a wave of nothing"):
        fail_over(asked | {"topics": ["nothing"], "dry_run": False}, "me")
    assert fail_over(asked, "me") == f"link {link}: dry run: would wait for, or fail at: copying, drain"
    with pytest.raises(AirflowFailException, match="2 of 2 partitions are not copied"):
        fail_over(asked | {"dry_run": False}, "me")
    assert "% of the steps hold" in rehearse(link, "me")
    assert "% of the steps hold" in fail_over(asked | {"kind": "rehearsal"}, "me")
    assert ": 0 ACLs removed" in fail_over(asked | {"unfence": True}, "me")
    assert "dry run" in fail_over(asked | {"kind": "unplanned", "even_if_source_answers": True}, "me")
    done = fail_over(asked | {"kind": "unplanned", "even_if_source_answers": True, "dry_run": False}, "me")
    assert done.startswith(f"link {link}: unplanned failover")
    assert "done in" in done
