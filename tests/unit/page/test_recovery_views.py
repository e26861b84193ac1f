"""What the page says of failovers and rehearsals."""

from typing import Any

from strait.exporter.observation import Observation
from strait.state.failover_records import Failover, FailoverStep
from strait.state.verified import Verified
from strait_airflow.page.views.recovery import recovery_page, report
from strait_airflow.page.watches.polled import Seen
from support.model.plans import classed_plan


def record(number: int, kind: str = "rehearsal", outcome: str = "done", **fields: Any) -> Failover:
    steps = tuple(
        FailoverStep(name=name, verdict=verdict, detail=f"{name}!", began_at_ms=1, seconds=1.0)
        for name, verdict in (("still", "done"), ("topics", "warning"), ("groups", "failed"))
    )
    given = {"source": "a", "destination": "b", "by": "ann", "turn": "t", "strait_version": "1", "began_at_ms": number}
    return Failover(id=str(number), link="l", kind=kind, outcome=outcome, steps=steps, **given | fields)


def page(*records: Failover) -> dict[str, Any]:
    return recovery_page(Seen(records), offset=0, limit=2)


def test_the_newest_rehearsal_that_has_ended_says_how_ready_the_link_is_and_what_is_missing():
    found = page(record(1, score=10), record(2, score=83), record(3, outcome="running"))["readiness"]
    assert (found["id"], found["score"], found["steps"]) == ("2", 83, 3)
    assert [(step["name"], step["verdict"]) for step in found["missing"]] == [
        ("topics", "warning"),
        ("groups", "failed"),
    ]
    assert page(record(3, kind="planned"))["readiness"] is None


def test_a_failover_that_was_cut_off_is_running_whatever_was_rehearsed_since():
    assert page(record(1, kind="planned", outcome="running"), record(2))["running"]
    assert not page(record(1, kind="planned", outcome="running"), record(2, kind="planned"))["running"]


def test_reports_are_the_newest_first_and_the_trend_the_oldest_first():
    found = page(*(record(number, score=number) for number in range(5)))
    assert [row["id"] for row in found["rows"]] == ["4", "3"]
    assert [point["score"] for point in found["trend"]] == [0, 1, 2, 3, 4]
    assert found["total"] == 5


def test_a_report_has_its_steps_and_a_line_that_sums_it_up():
    found = report(Seen((record(7, kind="planned", rto_seconds=12.0),)), "7")
    assert found is not None
    assert [step["name"] for step in found["steps"]] == ["still", "topics", "groups"]
    assert found["summary"].startswith("link l: planned failover 7 from a to b: done in 12.0 s")
    assert found["screen"]["left"] == ["link l is stopped: strait start l lets it copy again"]
    assert found["screen"]["next"][0] == "start producers and consumers on b"
    assert report(Seen((record(8),)), "8")["screen"] == {}  # type: ignore[index]
    assert report(Seen(()), "7") is None
    unread = {"age_seconds": None, "every_seconds": None}
    assert report(None, "7") == {"looking": True, "error": ""} | unread
    failed = report(Seen((), "gone"), "7")
    assert failed is not None
    assert (failed["looking"], failed["error"], "steps" in failed) == (False, "gone", False)
    assert recovery_page(None, offset=0, limit=2)["looking"]


def test_the_topics_that_audits_have_verified_are_shown_and_unknown_is_not_none():
    plan = classed_plan({"t": "normal", "u": "normal"})
    seen = Observation("l", "a", "b", 0.0, plans={"default": plan}, audited={"t": Verified("equal", 0, 3_600_000)})
    found = recovery_page(Seen(()), offset=0, limit=2, link=seen)["audited"]
    assert found["verdict"] == "warning"
    assert (
        "all records of 1 of 2 topics, and found no difference, until 1970-01-01 01:00:00 UTC; not of u"
        in found["detail"]
    )
    assert recovery_page(Seen(()), offset=0, limit=2)["audited"] is None
    assert recovery_page(Seen(()), offset=0, limit=2, link=Observation("l", "a", "b", 0.0))["audited"] is None
