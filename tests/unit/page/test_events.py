"""What happened to a link last."""

from typing import Any

import pytest

from strait.exporter.observation import Observation
from strait.state.failover_records import Failover
from strait.state.schema import Loss, Pause, Plan
from strait_airflow.page.views.events import events_since, last_event
from support.model.reports import plain_report


def plan(group: str, at_ms: int, *pauses: Pause, stopped: bool = False) -> Plan:
    given: dict[str, Any] = {"link": "l", "version": at_ms, "producer_id": 1, "slots": 1, "stopped": stopped}
    return Plan(group=group, published_at_ms=at_ms, pauses=pauses, **given)


def seen(*plans: Plan, **more: Any) -> Observation:
    return Observation("l", "a", "b", 0.0, plans={one.group: one for one in plans}, **more)


def loss(partition: int, at_ms: int) -> Loss:
    said: dict[str, Any] = {"side": "source", "cause": "source_truncated", "action": "halted", "detail": ""}
    return Loss(link="l", topic="x", partition=partition, at_ms=at_ms, from_offset=1000, to_offset=2000, **said)


def failover(kind: str, at_ms: int, outcome: str = "done") -> Failover:
    ends = {"source": "a", "destination": "b"}
    given: dict[str, Any] = {
        "id": "1",
        "link": "l",
        "turn": "t",
        "strait_version": "1",
        "began_at_ms": at_ms - 5,
    } | ends
    return Failover(kind=kind, outcome=outcome, by="ann", ended_at_ms=at_ms, **given)  # type: ignore[arg-type]


PAUSED = (Pause(by="bob", at_ms=20), Pause(topic="x", partition=3, by="ann", at_ms=30, reason="slow"))
LOST = (loss(1, 60), loss(0, 40))


@pytest.mark.parametrize(
    ("what", "event"),
    [
        (seen(plan("default", 10, stopped=True)), (10, "plan 10 of task group default published, which stops it")),
        (seen(plan("default", 10, *PAUSED)), (30, "x-3 paused by ann: slow")),
        (seen(plan("default", 10, *PAUSED[:1])), (20, "the link paused by bob")),
        (
            seen(plan("default", 50), losses=LOST),
            (60, "x-1: source_truncated, offsets 1,000 to 2,000 of the source"),
        ),
        (
            seen(plan("default", 50), failovers={"planned": failover("planned", 70, "aborted")}, losses=LOST),
            (70, "planned failover aborted, by ann"),
        ),
        (seen(failovers={"rehearsal": failover("rehearsal", 70)}), (70, "rehearsal done, by ann")),
    ],
)
def test_the_newest_of_all_kinds_is_told(what, event):
    found = last_event(what)
    assert found is not None
    assert (found["at_ms"], found["text"]) == event


def test_a_link_to_which_nothing_was_done_has_none():
    assert last_event(seen()) is None
    assert last_event(seen(plan("default", 10), plan("big", 9))) is None  # plans are published all the time


def test_the_marks_of_a_chart_are_all_that_is_known_since_then_oldest_first_and_each_once():
    begun = {("default", slot): (plain_report(slot=slot, application="app", started_at_ms=61_000),) for slot in (0, 1)}
    applications = [{"name": "strait-l", "submissions": [{"submitted_at_ms": 55}, {"submitted_at_ms": 5}]}]
    known = seen(
        plan("default", 50, *PAUSED), losses=LOST, reports=begun, failovers={"planned": failover("planned", 70)}
    )
    found = events_since(30, known, [failover("planned", 70), failover("rehearsal", 20)], applications)
    assert [(one["at_ms"], one["kind"], one["text"].split(",")[0]) for one in found] == [
        (30, "pause", "x-3 paused by ann: slow"),
        (40, "loss", "x-0: source_truncated"),
        (50, "plan", "plan 50 of task group default published"),
        (55, "restart", "application strait-l submitted"),
        (60, "loss", "x-1: source_truncated"),
        (70, "failover", "planned failover done"),
        (60_000, "restart", "2 slots of application app started"),
    ]
    assert [one["at_ms"] for one in events_since(0, None, [], applications)] == [5, 55]
