"""When a link's watch wakes its DAG. All times are seconds on one clock."""

import itertools
import json

import pytest

from strait_airflow.noticing import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, Acted, Finding, Noticing
from strait_airflow.run_notes import NOTE_CHARACTERS, note_of

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
    assert noticing.due(QUIET, {}, FIRST_PAUSE_SECONDS) == ["retry"]
    assert noticing.due(QUIET, {}, FIRST_PAUSE_SECONDS + 1) == []
    final = Noticing(ACTED._replace(failed="final"))
    assert not any(final.due(QUIET, {}, float(now)) for now in range(0, 10_000, 100))
    assert final.due(QUIET | {"settings": Finding("s2", "")}, {}, 10_000.0) == ["settings"]


def test_work_is_news_as_long_as_there_is_some():
    noticing = Noticing(Acted({**ACTED.seen, "work": "w1"}))
    assert noticing.due(QUIET | {"work": Finding("w1", "")}, {}, 0.0) == [], "a run could not do it"
    assert noticing.due(QUIET | {"work": Finding("", "")}, {}, 1.0) == []
    assert noticing.due(QUIET | {"work": Finding("w2", "")}, {}, 2.0) == ["work"]


def test_what_was_acted_upon_is_stored_and_nonsense_there_counts_as_nothing():
    acted = ACTED._replace(failed="final")
    assert Acted.of(json.loads(json.dumps(acted.data()))) == acted
    assert [Acted.of(stored) for stored in (None, "x", 5, {"seen": 3})] == [Acted()] * 4


def test_a_note_has_as_many_reasons_as_airflows_column_has_room_for():
    """A longer one would be refused by the database, and would end the scheduler each time it starts the run."""
    assert note_of(["b", "a", "b"]) == "b\na"
    found = note_of([f"reason {number}" for number in range(500)] + ["\0"])
    assert len(found) == NOTE_CHARACTERS
    assert found.startswith("reason 0\n") and found.endswith("…")
    assert "\0" not in note_of(["a\0b"])
