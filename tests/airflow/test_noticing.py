"""When a link's watch wakes its DAG. All times are seconds on one clock."""

import asyncio
import itertools
import json
import threading
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.text import utc
from strait_airflow.hours import next_hours
from strait_airflow.noticing import (
    ACTING_MOST_MS,
    ATTENTION_PAUSE_SECONDS,
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    RETRY_PAUSE_SECONDS,
    Acted,
    Acting,
    Finding,
    Judged,
    Noticing,
)
from strait_airflow.run_notes import NOTE_CHARACTERS, note_of
from strait_airflow.stored import notices_of
from strait_airflow.triggers import LinkTrigger, _payload

pytestmark = pytest.mark.core

QUIET = {"settings": Finding("s1", ""), "destination": Finding("", ""), "source": Finding("t1", "")}
ACTED = Acted({"settings": "s1", "source": "t1"})
DEAD = {"application_dead default 1": Finding("application_dead", "group default: application 1 ended")}


def test_what_was_acted_upon_wakes_nobody():
    noticing = Noticing(ACTED)
    assert [noticing.due(QUIET, {}, float(now)) for now in range(3)] == [[], [], []]
    assert not noticing.waiting


def test_what_is_other_than_was_acted_upon_wakes_at_once_and_by_its_name():
    assert Noticing(ACTED).due(QUIET | {"settings": Finding("s2", "")}, {}, 0.0) == ["settings"]
    assert Noticing(ACTED).due(QUIET | {"destination": Finding("away", "")}, {}, 0.0) == ["destination"]
    assert Noticing(Acted()).due(QUIET, {}, 0.0) == ["settings", "source"]


def test_what_persists_wakes_again_with_pauses_that_grow_and_end_growing():
    noticing, woken = Noticing(ACTED), []
    for now in range(6000):
        if noticing.due(QUIET, DEAD, float(now)):
            woken.append(now)
    pauses = [later - earlier for earlier, later in itertools.pairwise(woken)]
    assert pauses[:3] == [FIRST_PAUSE_SECONDS, 2 * FIRST_PAUSE_SECONDS, 4 * FIRST_PAUSE_SECONDS]
    assert pauses == sorted(pauses)
    assert max(pauses) == LONGEST_PAUSE_SECONDS


def test_news_does_not_wait_for_what_persists():
    noticing = Noticing(ACTED)
    noticing.due(QUIET, DEAD, 0.0)
    assert noticing.due(QUIET, DEAD, 1.0) == []
    assert "settings" in noticing.due(QUIET | {"settings": Finding("s2", "")}, DEAD, 2.0)
    assert "settings" in noticing.due(QUIET | {"settings": Finding("s3", "")}, DEAD, 3.0)
    another = {"application_dead default 2": Finding("application_dead", "")}
    assert "application_dead default 2" in noticing.due(QUIET, another, 4.0)


def test_what_comes_back_is_news_again():
    noticing = Noticing(ACTED)
    assert noticing.due(QUIET, DEAD, 0.0)
    assert noticing.waiting
    assert noticing.due(QUIET, {}, 1.0) == []
    assert not noticing.waiting
    assert noticing.due(QUIET, DEAD, 2.0)


def test_a_run_that_failed_is_tried_again_after_a_pause_unless_only_an_edit_helps():
    noticing = Noticing(ACTED._replace(failed="retriable"))
    assert noticing.due(QUIET, {}, 0.0) == []
    assert noticing.due(QUIET, {}, RETRY_PAUSE_SECONDS) == ["retry"]
    assert noticing.due(QUIET, {}, RETRY_PAUSE_SECONDS + 1) == []
    final = Noticing(ACTED._replace(failed="final"))
    assert not any(final.due(QUIET, {}, float(now)) for now in range(0, 10_000, 100))
    assert final.due(QUIET | {"settings": Finding("s2", "")}, {}, 10_000.0) == ["settings"]


def test_work_is_news_as_long_as_there_is_some():
    noticing = Noticing(Acted({**ACTED.seen, "work": "w1"}))
    assert noticing.due(QUIET | {"work": Finding("w1", "")}, {}, 0.0) == [], "a run could not do it"
    assert noticing.due(QUIET | {"work": Finding("", "")}, {}, 1.0) == []
    assert noticing.due(QUIET | {"work": Finding("w2", "")}, {}, 2.0) == ["work"]


AWAY = QUIET | {"destination": Finding("away", "cluster there: no broker answers")}


def test_a_cluster_that_is_away_is_one_run_and_one_when_it_is_back():
    noticing, woken = Noticing(ACTED), []
    for now in range(3600):
        if noticing.due(AWAY, {}, float(now)):
            woken.append(now)
            noticing.acted = Acted({**ACTED.seen, "destination": "away"}, "retriable")
    assert woken == [0]
    assert noticing.due(QUIET, {}, 3600.0) == ["destination", "retry"]


def test_what_a_run_acts_upon_wakes_no_second_one_however_long_it_takes():
    edited = QUIET | {"settings": Finding("s2", "edited")}
    noticing = Noticing(ACTED)
    assert noticing.due(edited, {}, 0.0, 0) == ["settings"]
    acting = ACTED.beginning("r1", {**ACTED.seen, "settings": "s2"}, 1000)
    noticing.acted = acting
    assert not any(noticing.due(edited, DEAD, float(now), now * 1000) for now in range(2, 120))
    other = QUIET | {"settings": Finding("s3", "edited again")}
    assert "settings" in noticing.due(other, {}, 120.0, 120_000), "another edit does not wait"
    noticing.acted = acting._replace(seen={**ACTED.seen, "settings": "s3"})
    noticing.judged = Judged().ending("r1", 121_000)
    assert noticing.due(other, {}, 122.0, 122_000) == []


def test_an_application_that_a_run_ends_to_restart_it_is_no_event():
    noticing = Noticing(ACTED.beginning("r1", ACTED.seen, 1000))
    assert noticing.due(QUIET, DEAD, 2.0, 2000) == []
    noticing.judged = Judged().ending("r1", 3000)
    assert noticing.due(QUIET, {}, 4.0, 4000) == []
    assert noticing.due(QUIET, DEAD, 5.0, 5000), "one that is dead after the run is"


def test_an_application_that_a_run_could_not_submit_waits_for_the_pause():
    noticing = Noticing(ACTED.beginning("r1", ACTED.seen, 1000))
    assert noticing.due(QUIET, DEAD, 2.0, 2000) == []
    noticing.judged = Judged(failed=True).ending("r1", 3000)
    woken = [now for now in range(4, 200) if noticing.due(QUIET, DEAD, float(now), now * 1000)]
    assert woken[0] == 4 + RETRY_PAUSE_SECONDS
    assert woken[1] == woken[0] + 2 * RETRY_PAUSE_SECONDS


def test_a_run_that_never_ends_is_not_waited_for_for_ever():
    noticing = Noticing(ACTED.beginning("r1", ACTED.seen, 0))
    assert noticing.due(QUIET, DEAD, 1.0, ACTING_MOST_MS - 1) == []
    assert noticing.due(QUIET, DEAD, 2.0, ACTING_MOST_MS)
    assert "r1" not in noticing.acted.beginning("r2", {}, ACTING_MOST_MS).acting


def test_an_application_that_is_held_wakes_when_it_may_be_submitted_again():
    dead = {"application_dead default 1": Finding("application_dead", "ended", "strait-l-default")}
    noticing = Noticing(ACTED._replace(held={"strait-l-default": 60_000}))
    assert not any(noticing.due(QUIET, dead, float(now), now * 1000) for now in range(60))
    assert noticing.due(QUIET, dead, 60.0, 60_000)


def needs(value: str) -> dict[str, Finding]:
    return QUIET | {"attention": Finding(value, f"needs {value}")}


def test_what_needs_an_operator_wakes_once_and_once_when_it_is_over():
    noticing = Noticing(ACTED)
    assert noticing.due(needs(""), {}, 0.0) == []
    assert noticing.due(needs("x"), {}, 1.0) == ["attention"]
    assert not any(noticing.due(needs("x"), {}, float(now)) for now in range(2, 7200)), "not even if no run has judged"
    noticing.judged = Judged(attention="x")
    assert noticing.due(needs("x"), {}, 7200.0) == []
    assert noticing.due(needs(""), {}, 7201.0) == ["attention"]


def test_needs_that_appear_during_a_run_wait_for_its_verdict():
    noticing = Noticing(ACTED.beginning("r1", ACTED.seen, 1000))
    assert noticing.due(needs("x"), {}, 2.0, 2000) == []
    noticing.judged = Judged(attention="x").ending("r1", 3000)
    assert noticing.due(needs("x"), {}, 4.0, 4000) == []
    noticing.judged = Judged().ending("r1", 3000)
    assert noticing.due(needs("x"), {}, 5.0, 5000) == ["attention"], "which did not find it"


def test_needs_that_come_and_go_wake_a_run_every_few_minutes_at_most():
    noticing, woken = Noticing(ACTED), []
    for now in range(3600):
        if noticing.due(needs(f"x{now % 120 // 60}"), {}, float(now)):
            woken.append(now)
            noticing.judged = Judged(attention=f"x{now % 120 // 60}")
    pauses = [later - earlier for earlier, later in itertools.pairwise(woken)]
    assert min(pauses) >= ATTENTION_PAUSE_SECONDS


def test_a_run_that_is_late_does_not_bring_old_facts_back():
    acted = ACTED.with_facts(2000, [{"settings": "s2"}])
    assert acted.with_facts(1000, [{"settings": "s1", "source": "t0"}]) == acted
    assert acted.with_facts(2000, [{"settings": "s3"}, {"settings": "s4"}]).seen == ACTED.seen | {"settings": "s4"}


def test_what_was_acted_upon_is_stored_and_nonsense_there_counts_as_nothing():
    acted = ACTED._replace(
        failed="final", held={"a": 5}, acting={"r": Acting(1, {"x": "y"})}, planned_at_ms=7, seen_at_ms=8
    )
    assert Acted.of(json.loads(json.dumps(acted.data()))) == acted
    assert [Acted.of(stored) for stored in (None, "x", 5, {"seen": 3})] == [Acted()] * 4


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*Acted().data(), *Judged().data(), "began_ms", "x"]), inner, max_size=6)
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_a_user_writes_into_the_state_of_the_asset_no_run_and_no_watch_fails(stored):
    acted, judged = Acted.of(stored), Judged.of(stored)
    json.dumps([acted.data(), judged.data()])
    for time_ms in (
        acted.planned_at_ms,
        acted.seen_at_ms,
        *acted.held.values(),
        *judged.known.values(),
        *judged.red.values(),
    ):
        utc(time_ms)
    for hour in next_hours(stored).values():
        utc(hour.expected), utc(hour.confirmed)
    noticing = Noticing(acted, judged)
    noticing.due(QUIET, DEAD, 0.0, 1_000)
    assert next_hours({"orders": [10**30, 0], "sales": [3_600_000, 7_200_000]}) == {"sales": (3_600_000, 7_200_000)}


def test_an_event_that_a_user_has_made_is_no_notice_of_the_watch():
    told = {
        "reasons": ["the settings have changed"],
        "plan": False,
        "silent": ["default"],
        "at_ms": 5,
        "seen": {"settings": "s"},
    }
    payload = _payload(["settings"], QUIET, {}, ["default"], new=False)
    assert notices_of([{"payload": told}, {"payload": payload}]) == [told, payload]
    others = [
        None,
        5,
        {},
        {"payload": None},
        {"payload": {}},
        {"payload": {**told, "at_ms": 10**30}},
        {"payload": {**told, "reasons": 1}},
    ]
    assert notices_of(others) == []
    forged = {**told, "plan": "no", "silent": [1, {}], "seen": {"settings": [1], "source": "t"}}
    assert notices_of([{"payload": forged}]) == [{**told, "plan": True, "silent": [], "seen": {"source": "t"}}]


def test_a_note_has_as_many_reasons_as_airflows_column_has_room_for():
    """A longer one would be refused by the database, and would end the scheduler each time it starts the run."""
    assert note_of(["b", "a", "b"]) == "b\na"
    found = note_of([f"reason {number}" for number in range(500)] + ["\0"])
    assert len(found) == NOTE_CHARACTERS
    assert found.startswith("reason 0\n") and found.endswith("…")
    assert note_of(["a\0b", "of \u202egroup\nand more"]) == r"a\\x00b" + "\n" + r"of \\u202egroup" + "\nand more"


def test_what_runs_have_stored_is_read_beside_the_event_loop_and_as_all_versions_of_airflow_can() -> None:
    readers = set()

    class Store:  # Airflow 3.3.0 has no `aget`
        def get(self, key: str) -> None:
            readers.add(threading.get_ident())

    trigger = LinkTrigger(link="l")
    trigger.asset_state_store = cast(Any, Store())
    assert asyncio.run(trigger._stored()) == (Acted(), Judged(), {})
    assert readers and threading.get_ident() not in readers
