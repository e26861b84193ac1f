"""The DAG file: what it declares, how cheap it is to parse, and what it does with bad configuration."""

import ast
import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from pkgutil import resolve_name

import pytest
import yaml
from airflow.dag_processing.dagbag import DagBag
from airflow.models.trigger import Trigger
from airflow.serialization.decoders import smart_decode_trigger_kwargs
from airflow.serialization.serialized_objects import DagSerialization

from strait_airflow.noticing import ACTING_MOST_MS
from strait_airflow.settings import live_settings
from strait_airflow.triggers import LinkTrigger

pytestmark = [pytest.mark.airflow, pytest.mark.core]

DAGS = Path(__file__).parents[2] / "dags"
CLUSTERS = {"a": {"bootstrap.servers": "127.0.0.1:1"}, "b": {"bootstrap.servers": "127.0.0.1:2"}}
LINK = {"source": "a", "destination": "b", "topics": {"include": ["orders"]}}


@pytest.fixture
def parse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Parse the DAG file over a links file of this text."""

    def parsed(text: str) -> DagBag:
        file = tmp_path / "links.yaml"
        file.write_text(text)
        monkeypatch.setenv("STRAIT_LINKS_FILE", str(file))
        monkeypatch.setenv("STRAIT_HOME", str(tmp_path / "home"))
        return DagBag(dag_folder=str(DAGS / "strait.py"))

    return parsed


@pytest.fixture
def bag(parse) -> DagBag:
    return parse(yaml.safe_dump({"clusters": CLUSTERS, "links": {"shop": LINK, "bank": LINK}}))


def test_every_link_has_one_dag_and_all_share_those_that_are_triggered(bag):
    assert bag.import_errors == {}
    links = ["strait_bank", "strait_shop"]
    shared = ["strait-audit", "strait-failover", "strait-pause", "strait-quarantine", "strait-rehearsal"]
    assert sorted(bag.dags) == [*shared, *links]
    failover = bag.dags["strait-failover"]
    # Nothing happens to who triggers it to see what it is.
    assert failover.params["dry_run"] is bag.dags["strait-quarantine"].params["dry_run"] is True


def test_no_run_is_made_up_for_the_past_and_none_overlaps_or_hangs(bag):
    for dag in bag.dags.values():
        assert dag.catchup is False
        # A run of a link may wait until an application replicates; only one at a time plans.
        runs = {"strait-failover": 16, "strait_bank": 4, "strait_shop": 4}
        assert dag.max_active_runs == runs.get(dag.dag_id, 1)
        hours = {"strait-audit": 12, "strait-failover": 4, "strait-rehearsal": 1, "strait-quarantine": 1}
        longest = timedelta(hours=hours[dag.dag_id]) if dag.dag_id in hours else timedelta(minutes=20)
        assert timedelta() < dag.dagrun_timeout <= longest
        assert all(task.execution_timeout for task in dag.tasks)


def test_a_run_whose_tasks_all_take_as_long_as_they_may_is_judged(bag):
    dag = bag.dags["strait_shop"]
    together = sum((task.execution_timeout for task in dag.tasks), timedelta())
    assert together < dag.dagrun_timeout == timedelta(milliseconds=ACTING_MOST_MS)


IN_TRIGGERER = {"healthy": timedelta(minutes=8), "metrics": timedelta(minutes=2)}


def test_the_scheduler_starts_what_the_triggerer_runs_without_a_worker(bag):
    stored = DagSerialization.from_dict(json.loads(json.dumps(DagSerialization.to_dict(bag.dags["strait_shop"]))))
    for name, within in IN_TRIGGERER.items():
        task = stored.get_task(name)
        assert (task.start_from_trigger, task.retries, task.execution_timeout) == (True, 0, within)
        start = task.start_trigger_args
        row = Trigger(classpath=start.trigger_cls, kwargs=start.trigger_kwargs)
        given = {key: smart_decode_trigger_kwargs(value) for key, value in row.kwargs.items()}
        trigger = resolve_name(start.trigger_cls)(**given)
        assert (trigger.link, start.timeout) == ("shop", within), "or Airflow would wait for a dead triggerer for ever"
        assert trigger.serialize() == (start.trigger_cls, {"link": "shop"})


def test_a_stop_of_airflow_does_not_make_a_run_red(bag):
    for dag in bag.dags.values():
        tasks = [task for task in dag.tasks if task.task_id not in IN_TRIGGERER]
        assert all(task.retries == 1 and task.retry_delay <= timedelta(seconds=10) for task in tasks)


def test_the_page_of_a_dag_names_what_to_edit(bag):
    assert "strait_topics_shop" in bag.dags["strait_shop"].doc_md
    assert all(dag.doc_md and "strait" in dag.tags for dag in bag.dags.values())


def test_dags_that_are_triggered_run_without_being_unpaused_and_for_the_links_that_there_are(bag):
    for name in ("strait-failover", "strait-pause", "strait-quarantine"):
        dag = bag.dags[name]
        assert dag.is_paused_upon_creation is False
        assert dag.params.get_param("link").schema["enum"] == ["bank", "shop"]


def test_no_application_is_restarted_unless_somebody_asks(bag):
    assert bag.dags["strait_shop"].params["restart"] == ""


def woken_by(dag):
    """The one watcher that starts its runs."""
    (asset,) = dag.timetable.asset_condition.objects
    (watcher,) = asset.watchers
    return asset.name, watcher.trigger["kwargs"] if isinstance(watcher.trigger, dict) else watcher.trigger.link


def test_the_runs_of_a_link_are_started_by_its_watch_and_once_an_hour_in_a_minute_of_its_own(bag):
    bank, shop = bag.dags["strait_bank"], bag.dags["strait_shop"]
    assert woken_by(shop) == ("strait_shop_watch", "shop")
    assert woken_by(bank) == ("strait_bank_watch", "bank")
    assert re.fullmatch(r"\d+ \* \* \* \*", shop.timetable.timetable.expression)
    assert shop.timetable.timetable.expression != bank.timetable.timetable.expression
    assert not any(task.outlets for task in shop.tasks), "a run that changes its own asset would start the next"


def test_the_graph_shows_the_work(bag):
    shop = bag.dags["strait_shop"]
    graph = {task.task_id: (sorted(task.upstream_task_ids), str(task.trigger_rule.value)) for task in shop.tasks}
    assert graph == {
        "monitor": ([], "all_success"),
        "submit": (["monitor"], "all_success"),
        "healthy": (["submit"], "all_success"),
        "metrics": (["healthy"], "all_done"),
        "verdict": (["metrics"], "all_done"),
    }
    assert [shop.get_task(name).get_closest_mapped_task_group() is not None for name in ("submit", "healthy")] == [
        True
    ] * 2
    assert [task.task_id for task in shop.tasks if task.max_active_tis_per_dag == 1] == ["monitor", "verdict"]
    assert shop.leaves == [shop.get_task("verdict")], "its state is that of the run"


def test_a_backfill_is_refused(bag):
    assert all("backfill" not in dag.allowed_run_types for dag in bag.dags.values())


ALERTS = {
    "on_failure": [
        {
            "notifier": "airflow.providers.smtp.notifications.smtp.SmtpNotifier",
            "arguments": {
                "to": "oncall@example.com",
                "subject": "{{ dag.dag_id }}",
                "html_content": "{{ dag_run.note }}",
            },
        }
    ],
    "deadline_seconds": 900,
}
ALERTS["on_deadline"] = ALERTS["on_failure"]


def test_notifiers_and_a_deadline_of_the_links_file_are_the_dags(parse):
    links = {"shop": LINK | {"alerts": ALERTS, "approval": "required"}, "bank": LINK}
    bag = parse(yaml.safe_dump({"clusters": CLUSTERS, "links": links}))
    assert bag.import_errors == {}
    shop, bank, asking = (bag.dags[name] for name in ("strait_shop", "strait_bank", "strait_shop_approval"))
    (callback,) = shop.on_failure_callback
    assert callback.to == "oncall@example.com"
    assert (bank.on_failure_callback, bank.deadline) == (None, None) or not bank.deadline
    (deadline,) = shop.deadline
    assert deadline.interval == timedelta(minutes=15)
    assert len(asking.on_failure_callback) == len(asking.get_task("ask").notifiers) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"notifier": "airflow.providers.nothing.Nothing"},
        {"notifier": "strait.errors.StraitError"},
        {"notifier": "airflow.providers.smtp.notifications.smtp.SmtpNotifier", "arguments": {"tto": "x"}},
    ],
)
def test_a_notifier_that_cannot_be_made_hides_no_dag_and_is_an_error_of_its_link(parse, wrong):
    links = {"shop": LINK | {"alerts": {"on_failure": [wrong]}}, "bank": LINK}
    bag = parse(yaml.safe_dump({"clusters": CLUSTERS, "links": links}))
    assert bag.import_errors == {}
    assert {"strait_shop", "strait_bank"} <= set(bag.dags)
    found = live_settings("shop")
    assert "links.shop.alerts.on_failure.0: " in str(found.error)
    assert wrong["notifier"] in str(found.error)
    assert live_settings("bank").error is None


def test_the_watch_is_stored_without_any_secret_and_comes_back_as_it_was():
    path, arguments = LinkTrigger(link="shop").serialize()
    assert (path, arguments) == ("strait_airflow.triggers.LinkTrigger", {"link": "shop"})
    assert LinkTrigger(**arguments).serialize() == (path, arguments)


def test_a_link_that_wants_to_be_asked_has_a_dag_that_waits_beside_the_others(parse):
    broken = {"approval": "required", "source": ["nowhere"]}
    links = {"shop": LINK | {"approval": "required"}, "bank": LINK, "broken": broken}
    bag = parse(yaml.safe_dump({"clusters": CLUSTERS, "links": links}))
    assert bag.import_errors == {}
    assert {name for name in bag.dags if name.endswith("_approval")} == {
        "strait_shop_approval",
        "strait_broken_approval",
    }
    asking = bag.dags["strait_shop_approval"]
    ask = asking.get_task("ask")
    assert asking.max_active_runs == 1
    assert woken_by(asking) == woken_by(bag.dags["strait_shop"])
    assert asking.catchup is False
    assert asking.dagrun_timeout > ask.response_timeout, "a question that is withdrawn is no failed run"
    assert (ask.upstream_task_ids, ask.downstream_task_ids) == ({"look"}, {"act"})
    assert ask.defaults == ["Reject"]
    assert all(task.execution_timeout <= timedelta(minutes=2) for task in asking.tasks)


def test_a_broken_link_hides_no_other_and_keeps_its_own_dags(parse):
    broken = {"source": "a", "destination": "nowhere", "topics": {"includ": []}}
    bag = parse(yaml.safe_dump({"clusters": CLUSTERS, "links": {"shop": LINK, "broken link": broken}}))
    assert bag.import_errors == {}
    assert {"strait_shop", "strait_broken_link"} <= set(bag.dags)


@pytest.mark.parametrize("text", ["links: [", "just words", "clusters: {}"])
def test_a_links_file_that_cannot_be_read_is_one_clear_import_error(parse, text):
    bag = parse(text)
    (error,) = bag.import_errors.values()
    assert "ConfigError: links file" in error.strip().splitlines()[-1]


def test_a_links_file_that_could_be_read_before_keeps_its_dags_and_each_link_says_where_it_is_wrong(parse):
    right = yaml.safe_dump({"clusters": CLUSTERS, "links": {"shop": LINK | {"approval": "required"}, "bank": LINK}})
    before = set(parse(right).dags)
    bag = parse(right + "\n  bad: [\n")
    assert bag.import_errors == {}
    assert set(bag.dags) == before
    for link in ("shop", "bank"):
        assert re.search(r"links.yaml: is neither YAML nor JSON: line \d+, column \d+", str(live_settings(link).error))


def test_the_top_of_the_file_imports_only_what_is_cheap():
    tree = ast.parse((DAGS / "strait.py").read_text())
    modules = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    modules |= {str(node.module) for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert {module.partition(".")[0] for module in modules} <= {
        "airflow",
        "datetime",
        "pendulum",
        "strait_airflow",
        "typing",
        "zlib",
    }


def test_parsing_loads_neither_kafka_nor_spark(tmp_path):
    links = tmp_path / "links.yaml"
    links.write_text(yaml.safe_dump({"clusters": CLUSTERS, "links": {"shop": LINK}}))
    code = (
        "import runpy, sys\n"
        f"runpy.run_path({str(DAGS / 'strait.py')!r})\n"
        "print([name for name in ('confluent_kafka', 'kafka', 'pyspark') if name in sys.modules])"
    )
    environment = os.environ | {
        "STRAIT_HOME": str(tmp_path / "home"),
        "STRAIT_LINKS_FILE": str(links),
        "PYTHONPATH": f"{DAGS.parent / 'plugins'}:{DAGS.parent / 'include'}",
    }
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip().splitlines()[-1] == "[]", done.stderr


def test_the_page_of_a_dag_and_each_of_its_tasks_lead_to_the_link(parse, monkeypatch):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/ops/")
    links = {"<b>lost & found</b>": LINK | {"approval": "required"}}
    bag = parse(yaml.safe_dump({"clusters": CLUSTERS, "links": links}))
    address = "https://airflow.example/ops/plugin/strait#/link/%3Cb%3Elost%20%26%20found%3C%2Fb%3E"
    its_own = [dag for name, dag in bag.dags.items() if name.startswith("strait_")]
    assert len(its_own) == 2
    for dag in its_own:
        assert f"]({address})" in dag.doc_md
        for task in dag.tasks:
            (button,) = task.operator_extra_links
            assert (button.name, button.get_link(task, ti_key=None)) == ("Strait", address)
