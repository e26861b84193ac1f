"""The reference names every field of what others may read: state records, gauges and the replication ledger."""

import re

import pytest

from strait.spark.ledger_files import COLUMNS
from strait.state.group_sync_records import GroupSyncReport
from strait.state.moved_copies import MovedCopies
from strait.state.record import Record
from strait.state.report_changes import FailureReport, HistoryPoint, ReportChanges, TrafficReport
from strait.state.report_records import HeartbeatReport, PartitionReport, Report
from strait.state.schema import (
    Budget,
    GivenAcl,
    LeftTopic,
    Loss,
    LossAcknowledgement,
    OffsetMapping,
    Plan,
    PlannedGroupSync,
    PlannedHeartbeat,
    PlannedSettings,
    PlannedTopic,
    Registration,
    TopicPolicy,
    Waiting,
)
from support.doc_tables import ROOT

PAGES = [ROOT / "docs/reference/state-topics.md", ROOT / "docs/reference/metrics.md"]
TEXT = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)


def section(title: str) -> str:
    return TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]


def first_column(title: str) -> list[str]:
    rows = [line for line in section(title).splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`(\w+)`", row.split(" | ")[0])]


@pytest.mark.parametrize(
    ("title", "fields"),
    [
        ("A report", list(Report.model_fields)),
        ("Changes in a report", list(ReportChanges.model_fields)),
        ("Traffic in the reports", list(TrafficReport.model_fields)),
        ("The failure of a slot", list(FailureReport.model_fields)),
        ("The history", list(HistoryPoint.model_fields)),
        ("Heartbeats", list(HeartbeatReport.model_fields)),
        ("A partition in a report", list(PartitionReport.model_fields)),
        ("Consumer groups in the reports", list(GroupSyncReport.model_fields)),
        ("The plan", list(Plan.model_fields)),
        ("The policy of a topic", list(TopicPolicy.model_fields)),
        ("The map", list(OffsetMapping.model_fields)),
        ("The producers", list(Registration.model_fields)),
        ("Moved-in copies", list(MovedCopies.model_fields)),
        ("The loss log", list(Loss.model_fields)),
        ("Acknowledged losses", list(LossAcknowledgement.model_fields)),
        ("The replication ledger", ["link", "application", *COLUMNS]),
    ],
)
def test_every_field_has_its_row_and_no_other(title: str, fields: list[str]) -> None:
    assert sorted(first_column(title)) == sorted(fields)


@pytest.mark.parametrize(
    ("row", "record"),
    [
        ("topics", PlannedTopic),
        ("waiting", Waiting),
        ("budgets", Budget),
        ("heartbeat", PlannedHeartbeat),
        ("consumer_groups", PlannedGroupSync),
        ("settings", PlannedSettings),
        ("acls", GivenAcl),
        ("left", LeftTopic),
    ],
)
def test_the_parts_of_a_plan_are_named_in_its_row(row: str, record: type[Record]) -> None:
    line = next(line for line in section("The plan").splitlines() if line.startswith(f"| `{row}`"))
    assert set(re.findall(r"`(\w+)`", line)) - {row} == set(record.model_fields)


def test_every_gauge_has_its_row_and_no_other() -> None:
    code = (ROOT / "plugins/strait_airflow/gauges.py").read_text(encoding="utf-8")
    shown = re.findall(r"^\| `(strait\.[\w-]+)`", section("Gauges"), re.MULTILINE)
    assert sorted(shown) == sorted(re.findall(r'gauge\("([\w.-]+)"', code))
