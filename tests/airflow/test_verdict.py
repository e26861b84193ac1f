"""Whether a run is red, and for what: an incident is new once."""

import json

import pytest

from strait_airflow.graph import attempt_of, cleared_alone, plain
from strait_airflow.noticing import ACTING_MOST_MS, Judged, reasons_of
from strait_airflow.verdict import STILL, Incident, attention_of, note_lines, verdict_of

pytestmark = pytest.mark.core

HALTED = Incident("halted orders foreign_writer", "topic orders 0: foreign_writer: another producer wrote. Revoke it")
DOWN = "cluster there: reading state topics: no broker answers"


FIRST = Judged()


def verdict(failures=(), needs=(), judged=FIRST, run="r1", now_ms=1000, **more):
    return verdict_of(failures, needs, judged, run, now_ms, **more)


def test_nothing_found_is_green_and_forgets_what_was_known():
    found = verdict(judged=Judged(known={HALTED.id: 5}, attention="x", failed=True))
    assert (found.lines, found.is_new) == ((), False)
    assert found.judged == Judged(ended={"r1": 1000})
    assert found.headline == "needs no operator"


def test_an_incident_is_new_in_one_run_and_known_in_the_next():
    first = verdict(needs=[HALTED])
    assert (first.lines, first.is_new) == ((HALTED.line,), True)
    assert first.headline.startswith("needs an operator: topic orders 0")
    later = verdict(needs=[HALTED], judged=first.judged, run="r2", now_ms=9000)
    assert (later.lines, later.is_new, later.since_ms) == ((HALTED.line,), False, 1000)
    assert later.headline.startswith(STILL)
    assert later.judged.known == {HALTED.id: 1000}
    other = Incident("lag clicks", "topic clicks: the lag only grows")
    mixed = verdict(needs=[HALTED, other], judged=later.judged)
    assert mixed.is_new and mixed.lines == (other.line, HALTED.line), "what is new comes first"


def test_a_cause_that_several_steps_report_is_one_line():
    assert len(verdict(failures=[DOWN, "cluster there: reading metrics: timed out"]).lines) == 1


def test_what_cannot_be_seen_now_is_not_over():
    known = verdict(needs=[HALTED]).judged
    blind = verdict(failures=[DOWN], needs=None, judged=known, now_ms=2000)
    assert blind.judged.known == {HALTED.id: 1000, "failure cluster there": 2000}
    assert blind.judged.attention == known.attention
    again = verdict(needs=[HALTED], judged=blind.judged, now_ms=3000)
    assert not again.is_new


def test_the_watch_compares_the_needs_alone():
    assert verdict(failures=[DOWN]).judged.attention == ""
    assert verdict(needs=[HALTED]).judged.attention == attention_of([HALTED.id]) != attention_of([])


def test_what_is_stored_is_small_after_a_year():
    judged = Judged()
    for run in range(400):
        incidents = [Incident(f"halted t{n}", "x" * 500) for n in range(1000)]
        judged = verdict(needs=incidents, judged=judged, run=f"r{run}", now_ms=run * ACTING_MOST_MS).judged
    assert len(json.dumps(judged.data())) < 20_000
    assert Judged.of(json.loads(json.dumps(judged.data()))) == judged


@pytest.mark.parametrize("stored", [None, "x", 5, {"known": 3, "ended": {"r": "x"}, "attention": 7}])
def test_nonsense_in_the_store_counts_as_nothing(stored):
    assert Judged.of(stored)._replace(attention="") == Judged()


def test_a_note_begins_with_what_needs_an_operator_and_a_green_one_ends_with_what_was_done():
    red = note_lines(verdict(needs=[HALTED]), ["its settings were edited"], "done: plan 5", "")
    assert red == ["needs an operator:", f"- {HALTED.line}", "run because: its settings were edited"]
    known = verdict(needs=[HALTED], judged=Judged(known={HALTED.id: 1}))
    assert note_lines(known, [], "done: x", "2026-01-01 00:00:00")[0] == f"{STILL}, since 2026-01-01 00:00:00 UTC:"
    assert note_lines(verdict(), ["b"], "done: plan 5", "") == ["b", "done: plan 5"]


def notice(*reasons):
    return {"reasons": list(reasons)}


def test_a_reason_that_the_newest_event_does_not_have_is_over():
    edited, invalid = "its settings were edited", "its settings are invalid: x"
    assert reasons_of([notice(invalid), notice(edited), notice(edited)]) == [f"over: {invalid}", edited]
    assert reasons_of([]) == []


def test_a_message_that_the_triggerer_passed_on_is_read_like_a_task_s():
    assert [plain(text) for text in (None, "a: b", '"a: b"', '""')] == [None, "a: b", "a: b", ""]


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
