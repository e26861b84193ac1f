"""Alerts and dashboard: Prometheus reads them, they fire when they should, and name only what there is."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from strait.reasons import Kind, Reason
from support.doc_tables import ROOT
from support.monitoring.files import RULES, alerts, exported, labels_of, metrics_of, panels, rule_file
from support.monitoring.prometheus import program

UNIT_TESTS = Path(__file__).with_name("alerts.test.yml")

pytestmark = pytest.mark.monitoring


def promtool(*arguments: object, cwd: Path) -> str:
    command = [program("promtool"), *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_reads_rules_and_queries(tmp_path: Path) -> None:
    assert f"{len(alerts())} rules found" in promtool("check", "rules", RULES, cwd=tmp_path)
    queries = [query for of_panel in panels().values() for query in of_panel]
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), encoding="utf-8")
    assert f"{len(queries)} rules found" in promtool("check", "rules", file, cwd=tmp_path)


def test_alerts_fire_when_they_should_and_not_otherwise(tmp_path: Path) -> None:
    rules = rule_file()
    for group in rules["groups"]:
        for rule in group["rules"]:
            del rule["annotations"]  # promtool compares them whole; texts may change
    (tmp_path / RULES.name).write_text(yaml.safe_dump(rules), encoding="utf-8")
    (tmp_path / UNIT_TESTS.name).write_bytes(UNIT_TESTS.read_bytes())
    assert "SUCCESS" in promtool("test", "rules", UNIT_TESTS.name, cwd=tmp_path)


def test_each_alert_is_seen_to_fire() -> None:
    groups = yaml.safe_load(UNIT_TESTS.read_text(encoding="utf-8"))["tests"]
    fires = {test["alertname"] for group in groups for test in group["alert_rule_test"] if test["exp_alerts"]}
    assert fires == set(alerts())


@pytest.mark.parametrize("name", alerts())
def test_each_alert_names_its_section(name: str) -> None:
    rule = alerts()[name]
    path, _, anchor = rule["annotations"]["runbook"].partition("#")
    headings = re.findall(r"^#+ (\w+)$", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    assert name in headings and anchor == name.lower()
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}


def test_queries_name_only_what_is_exported() -> None:
    known = exported()
    queries = [*(rule["expr"] for rule in alerts().values()), *(query for each in panels().values() for query in each)]
    assert len(queries) > 50
    for query in queries:
        metrics = metrics_of(query)
        assert metrics <= set(known), query
        if metrics:
            labels = frozenset[str]().union(*(known[metric] for metric in metrics))
            assert labels_of(query) <= labels, query


def test_every_metric_is_shown_or_watched() -> None:
    queries = [*(rule["expr"] for rule in alerts().values()), *(query for each in panels().values() for query in each)]
    named = set().union(*map(metrics_of, queries))
    plain = {"strait_link", "strait_slots", "strait_latency_seconds_sum", "strait_latency_seconds_count"}
    plain |= {"strait_plan_published_timestamp_seconds", "strait_slot_epoch_start_timestamp_seconds"}
    assert set(exported()) - named == plain


def test_partitions_waiting_leaves_out_what_is_meant_and_what_other_alerts_tell() -> None:
    left_out = re.findall(r'reason!~"([^"]*)"', alerts()["StraitPartitionsWaiting"]["expr"])
    other = {reason.value for reason in Reason if reason.kind in (Kind.SKIPPED, Kind.NEEDS_DECISION)}
    other |= {Reason.SLOT_SILENT.value, Reason.OPEN_TRANSACTION.value}
    assert {code for each in left_out for code in each.split("|")} == other
