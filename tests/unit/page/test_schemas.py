"""What the HTTP API says its answers are is what the page's views make, field by field."""

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from strait.control.forecast import Forecast
from strait.control.quarantine import Record
from strait.exporter.observation import Observation
from strait.planning.consumer_groups import OffsetState
from strait.planning.history.sample import Sample as Point
from strait.planning.review.backfill import Backfill, TopicBackfill
from strait.planning.risks.risks import Risk
from strait.planning.status.needs import Need
from strait.planning.status.status import SlotStatus, Status
from strait.state.group_sync_records import GroupSyncReport
from strait.state.quarantine_log import Entry
from strait.state.schema import LossAcknowledgement, PlannedSettings, Waiting
from strait_airflow.page.schemas import details, links, recovery
from strait_airflow.page.schemas.common import Looked
from strait_airflow.page.views.details import (
    applications_view,
    link_details,
    partition_details,
    partition_runs,
    quarantine_page,
)
from strait_airflow.page.views.events import events_since
from strait_airflow.page.views.groups import Sync, group_details, groups_page
from strait_airflow.page.views.links import LinksQuestion, Question, link_row, links_page, partition_page
from strait_airflow.page.views.map import map_of
from strait_airflow.page.views.preview import preview_of
from strait_airflow.page.views.recovery import recovery_page, report
from strait_airflow.page.views.topics import topic_page
from strait_airflow.page.watches.polled import Seen
from support.model.plans import classed_plan
from support.model.reports import plain_run
from unit.page import test_details_views, test_preview
from unit.page.test_applications_view import ONE
from unit.page.test_groups_views import SEEN as GROUPS
from unit.page.test_recovery_views import record
from unit.page.test_views import NOW

ASKED = {"search": "", "offset": 0, "limit": 20}
RIGHTS = {"dags": {"pause": "strait-pause"}, "variable": "v", "may": {"pause": True}, "own_dags": ["strait_l"]}


def exact(model: Any, answer: Any) -> None:
    """Fail unless the answer has all of the model's fields, and no other."""
    told = json.loads(json.dumps(answer))
    adapter = TypeAdapter(model)
    assert adapter.dump_python(adapter.validate_python(told, extra="forbid"), mode="json") == told


def sync_report() -> GroupSyncReport:
    figures = {"groups": 4, "in_sync": 3, "offsets": {"behind": 1}, "committed": 0, "rereads": 0, "interval_seconds": 3}
    return GroupSyncReport(link="l", application="1", at_ms=7, seconds=0.1, **figures)  # type: ignore[arg-type]


def seen() -> Any:
    """A link of which everything is known."""
    found = test_details_views.SEEN
    silent = SlotStatus(0, silent=True, age_ms=9_000, application="x", host="h", latency_ms_p99=4.0)
    plans = dict(found.plans)
    plans["default"] = plans["default"].model_copy(
        update={
            "settings": PlannedSettings(digest="d", topics_digest="t", origins={"topics": "Variable"}, topics="{}"),
            "waiting": (Waiting(topic="z", reason="source_missing", detail="gone"),),
        }
    )
    statuses = (*found.statuses, Status("l", "default", 2, False, (silent,), ()))
    need = Need("halted", "x source_truncated", "it halts", "Decide", "x")
    said = LossAcknowledgement(link="l", count=1, by="ann", at_ms=9)
    found = replace(found, loss_acknowledgements=(said,))
    return replace(found, plans=plans, statuses=statuses, needs=(need,), group_sync=sync_report(), quarantined={"x": 1})


def test_a_link_and_its_parts():
    row = link_row("l", seen(), NOW)
    exact(links.LinkRow, row)
    exact(links.Links, links_page([row], LinksQuestion()))
    exact(links.ClusterMap, map_of([row | {"pool": "main"}]))
    exact(links.Link, link_details("l", seen(), NOW) | RIGHTS)
    exact(links.Partitions, partition_page(seen(), Question()))
    exact(links.Topics, topic_page(seen(), **ASKED))
    exact(links.Partition, partition_details(seen(), "x", 1))
    exact(Looked, partition_details(None, "x", 1))


def test_a_link_that_was_not_read_yet_has_the_fields_without_a_default_alone():
    row = link_row("l", None, NOW)
    assert set(row) == {name for name, field in links.LinkRow.model_fields.items() if field.is_required()}
    links.Links.model_validate(links_page([row], LinksQuestion()), extra="forbid")
    links.Link.model_validate(link_details("l", None, NOW) | RIGHTS, extra="forbid")


def test_what_is_read_apart():
    exact(details.OffsetSegments, partition_runs(Seen({("x", 0): (plain_run(),)}), "x", 0))
    entry = Entry(1, "x", 0, 5, 9, "x", "batch_too_large", "why", 10, 20)
    exact(details.QuarantinedRecords, quarantine_page(Seen((entry,)), **ASKED))
    shown = Record(entry, b"k", b"\xff", [("h", None)]).readable(100, with_value=True)
    exact(details.QuarantinedContents, shown)
    submission = {"id": "s", "state": "running", "submitted_at_ms": 1, "exit_code": None, "cause": "", "log": "/x"}
    application = ONE | {"submissions": [submission]}
    exact(details.Applications, applications_view(Seen((application,)), None, logs=True))
    exact(details.Sample, Point(1, 2.0, 3.0, 4, 5.0, 6.0, 7.0)._asdict())
    found = events_since(0, seen(), [], [application])
    assert found
    exact(details.History, {"now_ms": 1, "events": found, "looking": False, "error": "", "samples": []})


def test_consumer_groups():
    sync = Sync(True, sync_report(), 1_000)
    exact(details.Groups, groups_page(GROUPS, sync, state="", **ASKED))
    exact(details.GroupDetails, group_details(GROUPS, sync, "much", offset=0, limit=20))
    exact(Looked, group_details(None, sync, "much", offset=0, limit=20))
    assert OffsetState.BEHIND in groups_page(GROUPS, sync, state="", **ASKED)["states"]


def test_failovers():
    done = record(7, kind="planned", rto_seconds=12.0)
    exact(recovery.Recovery, recovery_page(Seen((record(1), done)), offset=0, limit=20))
    seen = Observation("l", "a", "b", 0.0, plans={"default": classed_plan({"t": "normal"})})
    exact(recovery.Recovery, recovery_page(Seen(()), offset=0, limit=20, link=seen))
    told = json.dumps(report(Seen((done,)), "7"))  # records of state topics are strict: JSON's lists are tuples there
    model = recovery.FailoverReport.model_validate_json(told, extra="forbid")
    assert json.loads(model.model_dump_json()) == json.loads(told)
    exact(Looked, report(None, "7"))


def test_a_preview():
    topics = (TopicBackfill("payments", 1, 50, 7200, "log"),)
    ahead = Forecast(Backfill(topics, 2.0, None), (Risk("missing_right", "payments", "no"),), ("cluster a: why",))
    found = preview_of(*test_preview.changed(include=["payments", "nowhere", "orders"], exclude=["orders"]), ahead)
    assert all(found[part]["shown"] for part in ("effects", "waits", "left_out"))
    exact(details.Preview, found)


@pytest.mark.parametrize("wrong", [{"more": 1}, {"link": 5}])
def test_an_answer_with_another_field_or_type_is_found(wrong):
    with pytest.raises(ValidationError):
        exact(links.LinkRow, link_row("l", seen(), NOW) | wrong)
