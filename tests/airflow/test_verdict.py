"""Whether a run is red, and for what: an incident makes one run red, and another one a day later."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from airflow.sdk.api.datamodels._generated import DagRunType

from strait.errors import ClusterUnavailable, ConfigError, LaunchError, LoginRejected, NotAuthorized
from strait.text import utc
from strait_airflow.errors import cause_of
from strait_airflow.graph import _run, attempt_of, cleared_alone, decoded
from strait_airflow.noticing import ACTING_MOST_MS, Judged, reasons_of
from strait_airflow.verdict import (
    KNOWN,
    RED_AGAIN_MS,
    UNCHECKED,
    Failure,
    Incident,
    attention_of,
    note_lines,
    unchanged,
    verdict_of,
)

pytestmark = pytest.mark.core

HALTED = Incident("halted orders foreign_writer", "topic orders 0: foreign_writer: another producer wrote. Revoke it")
GROWS = Incident("lag clicks", "topic clicks: the lag only grows")
DOWN = Failure("cluster there: does not respond", "cluster there: reading state topics: no broker answers")
WRONG = Failure("Variable x: y: unknown key", "Variable x: y: unknown key")
FIRST = Judged()


def verdict(planning=(), others=(), needs=(), judged=FIRST, run="r1", now_ms=1000, **more):
    return verdict_of(planning, others, needs, judged, run, now_ms, **more)


def test_nothing_found_is_green_and_forgets_what_was_known():
    found = verdict(judged=Judged(known={HALTED.id: 5}, attention="x", failed=True, red={HALTED.id: 5}))
    assert (found.lines, found.is_red) == ((), False)
    assert found.judged == Judged(ended={"r1": 1000})
    assert found.headline == "needs no operator"


def test_an_incident_makes_one_run_red_and_later_ones_say_since_when_it_is_known():
    judged, red = FIRST, []
    for number in range(200):  # every 45 s
        now_ms = 1000 + number * 45_000
        found = verdict(needs=[HALTED], planning=[DOWN], judged=stored(judged), run=f"r{number}", now_ms=now_ms)
        judged = found.judged
        red += [number] if found.is_red else []
        assert set(found.lines) == {DOWN.text, HALTED.line}
    assert red == [0]
    assert found.headline == f"{KNOWN} {utc(1000)} UTC: {DOWN.text}"
    assert judged.known == dict.fromkeys((f"failure {DOWN.cause}", HALTED.id), 1000)


def stored(judged: Judged) -> Judged:
    """As it comes back from Airflow's database, also after a restart."""
    return Judged.of(json.loads(json.dumps(judged.data())))


def test_while_a_slot_is_silent_what_it_said_is_not_over_and_is_no_news_afterwards():
    """An application that was killed is started again, and its partitions say nothing meanwhile."""
    first = verdict(needs=[HALTED])
    silent = verdict(needs=[], judged=stored(first.judged), run="r2", partial=True)
    assert not silent.is_red
    assert silent.kept == (HALTED.id,)
    assert note_lines(silent, (), "")[1:] == [f"- {HALTED.id} ({UNCHECKED})"], "nobody knows whether it lasts"
    red = verdict(needs=[GROWS], judged=stored(first.judged), run="r2", partial=True)
    assert note_lines(red, (), "") == ["needs an operator:", f"- {GROWS.line}", f"- {HALTED.id} ({UNCHECKED})"]
    assert silent.judged.attention == first.judged.attention, "the watch sees no change"
    again = verdict(needs=[HALTED], judged=stored(silent.judged), run="r3")
    assert not again.is_red
    assert again.headline.startswith(KNOWN)
    over = verdict(needs=[], judged=stored(again.judged), run="r4")
    assert (over.judged.known, over.judged.attention) == ({}, "")


def test_a_day_later_it_is_red_again_once():
    judged = verdict(needs=[HALTED], now_ms=0).judged
    red = []
    for hour in range(1, 73):
        found = verdict(needs=[HALTED], judged=stored(judged), run=f"h{hour}", now_ms=hour * 3_600_000)
        judged = found.judged
        red += [hour] if found.is_red else []
    assert red == [24, 48, 72]
    assert RED_AGAIN_MS == 24 * 3_600_000
    assert found.lines == (f"{HALTED.line} ({KNOWN} {utc(0)} UTC)",)


def test_a_run_that_is_judged_again_as_its_worker_died_stays_red():
    judged = verdict(needs=[HALTED]).judged
    assert verdict(needs=[HALTED], judged=judged, now_ms=2000).is_red
    assert not verdict(needs=[HALTED], judged=judged, run="r2", now_ms=2000).is_red


def test_another_cause_is_red_at_once_and_names_what_is_known():
    first = verdict(needs=[HALTED])
    mixed = verdict(needs=[HALTED, GROWS], judged=first.judged, run="r2", now_ms=2000)
    assert mixed.is_red
    assert mixed.lines == (GROWS.line, f"{HALTED.line} ({KNOWN} {utc(1000)} UTC)"), "what is new comes first"
    login = Failure("cluster there: rejects the credentials", "cluster there: SASL authentication failed")
    assert verdict(planning=[login], judged=verdict(planning=[DOWN]).judged, run="r2").is_red


def test_what_comes_back_after_it_was_over_is_red_again():
    judged = verdict(needs=[HALTED], planning=[DOWN]).judged
    judged = verdict(judged=judged, now_ms=2000).judged
    assert (judged.known, judged.red) == ({}, {})
    assert verdict(needs=[HALTED], judged=judged, now_ms=3000).is_red
    assert verdict(planning=[DOWN], judged=judged, now_ms=3000).is_red


def test_a_cause_that_several_steps_report_is_one_line():
    again = Failure(DOWN.cause, "cluster there: reading metrics: timed out")
    assert verdict(planning=[DOWN], others=[again]).lines == (DOWN.text,)


def test_what_cannot_be_seen_now_is_not_over():
    known = verdict(needs=[HALTED]).judged
    blind = verdict(planning=[DOWN], needs=None, judged=known, now_ms=2000)
    assert blind.judged.known == {HALTED.id: 1000, f"failure {DOWN.cause}": 2000}
    assert blind.judged.attention == known.attention
    again = verdict(needs=[HALTED], judged=blind.judged, run="r3", now_ms=3000)
    assert not again.is_red


def test_a_wrong_setting_is_not_over_because_a_run_did_not_plan():
    wrong = verdict(planning=[WRONG])
    dead = verdict(judged=stored(wrong.judged), run="r2", planned=False, now_ms=2000)
    assert (dead.is_red, dead.kept) == (False, (WRONG.cause,))
    assert dead.headline == f"{KNOWN} {utc(1000)} UTC: {WRONG.cause} ({UNCHECKED})"
    assert not verdict(planning=[WRONG], judged=stored(dead.judged), run="r3", now_ms=3000).is_red
    over = verdict(judged=stored(dead.judged), now_ms=3000)
    assert (over.headline, over.judged.known) == ("needs no operator", {})


def test_a_run_that_looked_for_nothing_leaves_everything_as_it_was():
    known = verdict(needs=[HALTED], planning=[WRONG]).judged
    found = unchanged(known, "r2", 5000)
    assert (found.is_red, found.judged) == (False, known.ending("r2", 5000))
    assert note_lines(found, (), "done: nothing new")[0] == f"{KNOWN} {utc(1000)} UTC:"
    assert unchanged(Judged(), "r2", 5000).headline == "needs no operator"


def test_a_submission_that_failed_is_over_once_a_run_without_planning_succeeds():
    failed = verdict(others=[Failure("spark-submit exited", "spark-submit exited")], planned=False)
    assert verdict(judged=failed.judged, planned=False).judged.known == {}


def test_the_watch_compares_the_needs_alone():
    assert verdict(planning=[DOWN]).judged.attention == ""
    assert verdict(needs=[HALTED]).judged.attention == attention_of([HALTED.id]) != attention_of([])


def test_what_is_stored_is_small_after_a_year():
    judged = Judged()
    for run in range(400):
        incidents = [Incident(f"halted t{n}", "x" * 500) for n in range(1000)]
        judged = verdict(needs=incidents, judged=judged, run=f"r{run}", now_ms=run * ACTING_MOST_MS).judged
    assert len(json.dumps(judged.data())) < 20_000
    assert stored(judged) == judged


@pytest.mark.parametrize(
    "nonsense", [None, "x", 5, {"known": 3, "ended": {"r": "x"}, "attention": 7, "red": [], "planning": 5}]
)
def test_nonsense_in_the_store_counts_as_nothing(nonsense):
    assert Judged.of(nonsense)._replace(attention="") == Judged()


def test_what_an_earlier_version_stored_is_known_and_red_once_more():
    earlier = Judged.of({"known": {HALTED.id: 1}, "attention": "x", "failed": False, "ended": {}})
    found = verdict(needs=[HALTED], judged=earlier)
    assert found.is_red and found.lines[0].endswith(f"({KNOWN} {utc(1)} UTC)")


def test_a_note_begins_with_what_needs_an_operator_and_a_green_one_ends_with_what_was_done():
    first = verdict(needs=[HALTED])
    red = note_lines(first, ["its settings were edited"], "done: plan 5")
    assert red == ["needs an operator:", f"- {HALTED.line}", "run because: its settings were edited"]
    reasons = [f"an operator is needed: {HALTED.line.removesuffix('. Revoke it')}", "topics of its source: +x"]
    assert note_lines(first, reasons, "")[2:] == [
        "run because: an operator is needed",
        "run because: topics of its source: +x",
    ], "nothing twice"
    known = note_lines(verdict(needs=[HALTED], judged=first.judged, run="r2"), ["b"], "done: plan 5")
    assert known == [f"{KNOWN} {utc(1000)} UTC:", f"- {HALTED.line}", "run because: b", "done: plan 5"]
    assert note_lines(verdict(), ["b"], "done: plan 5") == ["b", "done: plan 5"]


def test_a_cluster_that_does_not_respond_is_described_once_whichever_operation_met_it():
    found = verdict(planning=[Failure("x", "cluster there: looking up its ID: refused")])
    reasons = [
        "its destination cannot be read: cluster there: reading plans: refused",
        "its source cannot be read: cluster b: x",
    ]
    assert note_lines(found, reasons, "")[1:] == [
        "- cluster there: looking up its ID: refused",
        "run because: its destination cannot be read",
        "run because: its source cannot be read: cluster b: x",
    ]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (ClusterUnavailable("b", "reading x: timed out"), ClusterUnavailable("b", "reading y: no broker"), True),
        (ClusterUnavailable("a", "x"), ClusterUnavailable("b", "x"), False),
        (LoginRejected("b", "x: SASL (after 5ms)"), LoginRejected("b", "y: SASL"), True),
        (ClusterUnavailable("b", "x"), LoginRejected("b", "x"), False),
        (NotAuthorized("b", "x: topic orders denied"), NotAuthorized("b", "x: topic clicks denied"), False),
        (LaunchError("exited (pid 12), log 2026-01-01"), LaunchError("exited (pid 9), log 2026-01-02"), True),
        (ConfigError("f", ["line 27: x"]), ConfigError("f", ["line 28: x"]), False),
    ],
)
def test_a_cause_is_the_same_for_every_operation_and_time_and_differs_for_another_remedy(one, other, same):
    assert (cause_of(one) == cause_of(other)) is same


def notice(*reasons):
    return {"reasons": list(reasons)}


def test_a_reason_that_the_newest_event_does_not_have_is_over():
    edited, invalid = "its settings were edited", "its settings are invalid: x"
    assert reasons_of([notice(invalid), notice(edited), notice(edited)]) == [f"over: {invalid}", edited]
    assert reasons_of([]) == []


def test_a_message_that_the_triggerer_passed_on_is_read_like_a_task_s():
    assert [decoded(value) for value in (None, "a: b", '"a: b"', '""')] == [None, "a: b", "a: b", ""]
    assert [decoded(value) for value in ("[]", '[["a", "b"]]', ["a"], "[x")] == [[], [["a", "b"]], ["a"], "[x"]


def test_clearing_one_task_restarts_its_application_once_and_clearing_the_run_does_not():
    """Airflow sets `max_tries` to the number of tries so far plus the retries when a task instance is cleared."""
    assert not cleared_alone(try_number=1, max_tries=1, cleared=0, cleared_before=0), "its first attempt"
    assert not cleared_alone(try_number=2, max_tries=1, cleared=0, cleared_before=0), "its retry"
    assert cleared_alone(try_number=2, max_tries=2, cleared=1, cleared_before=0)
    assert not cleared_alone(try_number=3, max_tries=2, cleared=1, cleared_before=0), "the retry of that"
    assert cleared_alone(try_number=3, max_tries=3, cleared=2, cleared_before=0), "cleared once more"
    assert not cleared_alone(try_number=2, max_tries=2, cleared=1, cleared_before=1), "`monitor` was cleared, too"
    assert not cleared_alone(try_number=2, max_tries=1, cleared=1, cleared_before=0), "another task was cleared"
    assert [attempt_of(1, 1), attempt_of(2, 1), attempt_of(2, 2), attempt_of(3, 2)] == [1, 2, 1, 2]


@pytest.mark.parametrize("kind", [*DagRunType])
def test_a_run_that_a_person_has_triggered_is_known_from_others(kind: DagRunType) -> None:
    """The type is an enumeration whose text is not its value."""
    run = SimpleNamespace(
        run_id="r", run_after=datetime.now(UTC), clear_number=0, triggering_user_name="ann", run_type=kind
    )
    assert _run({"dag_run": run}).manual == (kind is DagRunType.MANUAL)
