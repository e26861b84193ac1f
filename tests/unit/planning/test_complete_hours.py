"""Which hours of a topic are complete, and which records each has."""

import json

import pytest

from strait.planning.status.complete_hours import (
    HOUR_MS,
    MOST_HOURS,
    Told,
    TopicEnds,
    complete_hours,
    due_hours,
    event_of,
    first_start,
    following,
    key_of,
    start_of,
    told_by,
)
from strait.planning.status.rows import PartitionStatus
from strait.reasons import Reason

NINE = 1_764_234_000_000  # 2025-11-27 09:00 UTC
LATENESS_MS = 60_000


def row(partition: int, position: int, reason: str = "", topic: str = "orders") -> PartitionStatus:
    state = "waiting" if reason else "copying"
    return PartitionStatus(topic, partition, topic, 0, state, reason, "", position)


def ends(*offsets: int, source_id: str = "one") -> TopicEnds:
    return TopicEnds(source_id, dict(enumerate(offsets)))


def complete(rows: list[PartitionStatus], *hours: TopicEnds, source_id: str = "one") -> list[int]:
    """The numbers of the hours that are complete."""
    found = [(NINE + number * HOUR_MS, one) for number, one in enumerate(hours)]
    return [(start - NINE) // HOUR_MS for start in complete_hours("orders", found, source_id, rows)]


def test_a_key_is_the_start_of_its_hour_in_utc():
    assert key_of(NINE) == "2025-11-27T09:00:00"
    assert start_of(key_of(NINE)) == NINE
    assert start_of("2025-11-27T09") is start_of("") is None


@pytest.mark.parametrize(
    ("now_ms", "count"),
    [
        (NINE, 0),
        (NINE + HOUR_MS + LATENESS_MS - 1, 0),
        (NINE + HOUR_MS + LATENESS_MS, 1),
        (NINE + 3 * HOUR_MS, 2),
        (NINE - 9 * HOUR_MS, 0),
        (NINE + 500 * HOUR_MS, MOST_HOURS),
    ],
)
def test_an_hour_is_due_once_its_end_and_the_lateness_have_passed_and_after_an_outage_the_oldest_first(now_ms, count):
    assert due_hours(NINE, now_ms, LATENESS_MS) == [NINE + number * HOUR_MS for number in range(count)]


def test_a_topic_begins_with_the_hour_in_which_it_is_added_or_with_the_one_that_is_asked_for():
    assert first_start(NINE + 59 * 60_000, None) == NINE
    assert first_start(NINE + 9 * HOUR_MS, NINE + 1) == NINE


def test_every_partition_has_to_be_replicated_up_to_its_end():
    rows = [row(0, 10), row(1, 4)]
    assert complete(rows, ends(10, 4)) == [0]
    assert complete(rows, ends(10, 5)) == []
    assert complete(rows, ends(10, 4, 0)) == [0], "a partition without a record delays nothing"
    assert complete(rows, ends(10, 4, 1)) == [], "one that the plan does not have yet does"
    assert complete([row(0, 99, topic="other")], ends(1)) == []


def test_the_hours_after_one_that_is_not_complete_wait():
    rows = [row(0, 10)]
    assert complete(rows, ends(3), ends(10), ends(11), ends(11)) == [0, 1]
    assert complete(rows, ends(11), ends(3)) == []


def test_a_paused_partition_is_waited_for_and_one_that_waits_for_a_decision_always():
    paused = row(0, 5, str(Reason.PAUSED))
    assert complete([paused], ends(5)) == [0]
    assert complete([paused], ends(6)) == []
    assert complete([row(0, 5, str(Reason.SOURCE_TRUNCATED))], ends(5)) == []


def test_of_a_topic_that_was_created_again_nothing_is_complete_until_the_plan_has_it():
    assert complete([row(0, 10)], ends(1, source_id="two")) == []
    assert complete([row(0, 10)], ends(1, source_id="two"), source_id="two") == [0]


def test_consecutive_hours_have_each_offset_once():
    told: Told | None = None
    seen: dict[str, list[tuple[int, int]]] = {"source": [], "destination": []}
    for number, at in enumerate((5, 5, 9, 20)):
        now = following(told, ends(at))
        event = json.loads(json.dumps(event_of(NINE + number * HOUR_MS, now, {0: at + 100}, told)))
        for side, ranges in seen.items():
            ranges.append(tuple(event[side]["0"]))
        told = told_by(event)
    assert seen["source"] == [(0, 5), (5, 5), (5, 9), (9, 20)]
    assert seen["destination"] == [(0, 105), (105, 105), (105, 109), (109, 120)]


def test_an_end_that_was_too_far_is_not_taken_back():
    """An open transaction hid the first record of the next hour, so the hour before ended with the log."""
    told = Told(NINE, ends(12), {0: 12})
    now = following(told, ends(9))
    assert now.ends == {0: 12}
    assert event_of(NINE + HOUR_MS, now, {0: 12}, told)["source"] == {"0": [12, 12]}


def test_a_partition_that_was_added_and_a_topic_that_was_created_again_begin_at_0():
    told = Told(NINE, ends(7), {0: 70})
    grown = event_of(NINE + HOUR_MS, ends(8, 3), {0: 80, 1: 30}, told)
    assert grown["source"] == {"0": [7, 8], "1": [0, 3]}
    assert grown["destination"] == {"0": [70, 80], "1": [0, 30]}
    assert not grown["created_again"]
    again = ends(2, source_id="two")
    event = event_of(NINE + HOUR_MS, following(told, again), {0: 90}, told)
    assert (event["source"], event["created_again"]) == ({"0": [0, 2]}, True)
    assert event["destination"] == {"0": [None, 90]}, "the copies may follow those of the topic before"


def test_an_offset_that_is_unknown_stays_unknown():
    told = Told(NINE, ends(7), {0: None})
    assert event_of(NINE + HOUR_MS, ends(8), {0: None}, told)["destination"] == {"0": [None, None]}


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"hour": "nine", "source": {}, "destination": {}, "source_id": ""},
        {"hour": key_of(NINE), "source": {"0": 5}, "destination": {}, "source_id": ""},
        {"hour": key_of(NINE), "source": {"0": [1, 2]}, "destination": {"0": [1, "x"]}, "source_id": ""},
        {"hour": 9, "source": {}, "destination": {}, "source_id": ""},
    ],
)
def test_an_event_that_somebody_else_made_tells_nothing(event):
    assert told_by(event) is None
