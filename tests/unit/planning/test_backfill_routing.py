"""History is copied in its own lane and handed over once it has caught up; nothing goes to and fro between lanes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.config.groups import Backfill
from strait.model import TopicPartition
from strait.planning.assignment.backfill_routing import Seen, routes_of
from strait.planning.history.load import Load

OWN = {"orders": "default", "gold": "gold", "old": "backfill"}
ORDERS = TopicPartition("orders", 0)
MANY = [TopicPartition("orders", number) for number in range(10)]


def load(lag_records: int = 0, lag_seconds: float = 0.0, *, caught_up: bool = False) -> Load:
    return Load(None, lag_records, lag_seconds, caught_up)


def lane(backfill: Backfill | None, seen: Seen, partition: TopicPartition = ORDERS) -> str:
    return routes_of([partition], OWN, backfill, seen)[partition]


def in_own(late: Load, others: int = 5) -> Seen:
    """One partition with this load among others that are not late."""
    before = dict.fromkeys(MANY[: others + 1], "default")
    return Seen(before, {**dict.fromkeys(MANY[1 : others + 1], load(caught_up=True)), ORDERS: late}, {})


def in_lane(now: Load | None) -> Seen:
    return Seen({ORDERS: "backfill"}, {} if now is None else {ORDERS: now}, {})


def test_without_a_lane_every_topic_is_copied_by_its_own_group() -> None:
    assert routes_of([ORDERS, TopicPartition("gold", 1)], OWN, None, in_lane(load(10**9))) == {
        ORDERS: "default",
        TopicPartition("gold", 1): "gold",
    }


@pytest.mark.parametrize(
    ("backfill", "history", "expected"),
    [
        (Backfill(behind_records=1000), 999, "default"),
        (Backfill(behind_records=1000), 1000, "backfill"),
        (Backfill(behind_seconds=60), 0, "default"),
        (Backfill(behind_seconds=60), 1, "backfill"),
    ],
)
def test_the_history_of_a_new_topic_goes_to_the_lane(backfill: Backfill, history: int, expected: str) -> None:
    assert lane(backfill, Seen({}, {}, {ORDERS: history})) == expected


def test_with_hours_only_what_is_new_goes_to_the_lane_and_what_falls_behind_does_not_stop_for_them() -> None:
    late = in_own(load(1000))
    assert lane(Backfill(behind_records=1000), late._replace(takes_late=False)) == "default"
    new = Seen({}, {}, {ORDERS: 1000}, takes_late=False)
    assert lane(Backfill(behind_records=1000), new) == "backfill"
    assert lane(Backfill(behind_records=1000), in_lane(load(1000))._replace(takes_late=False)) == "backfill"


def test_what_is_far_behind_goes_to_the_lane_and_what_is_not_stays() -> None:
    assert lane(Backfill(behind_records=1000), in_own(load(1000))) == "backfill"
    assert lane(Backfill(behind_records=1000), in_own(load(999))) == "default"
    assert lane(Backfill(behind_seconds=60), in_own(load(5, 60.0))) == "backfill"
    assert lane(Backfill(behind_seconds=60), in_own(load(10**9, 59.0))) == "default"


def test_where_most_of_a_group_is_behind_nobody_is_sent_away() -> None:
    assert lane(Backfill(behind_records=1000), in_own(load(5000), others=1)) == "backfill"
    assert lane(Backfill(behind_records=1000), in_own(load(5000), others=0)) == "default"


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (None, "backfill"),
        (load(101, 0.5), "backfill"),
        (load(100, 6.1), "backfill"),
        (load(100, 6.0), "default"),
        (load(100, 0.0), "backfill"),  # nothing copied since the start: nobody knows how old the next record is
        (load(caught_up=True), "default"),
    ],
)
def test_it_is_handed_over_once_a_tenth_of_each_threshold_is_left(now: Load | None, expected: str) -> None:
    assert lane(Backfill(behind_records=1000, behind_seconds=60), in_lane(now)) == expected


def test_a_topic_that_belongs_to_the_lane_stays_in_it() -> None:
    partition = TopicPartition("old", 0)
    seen = Seen({partition: "backfill"}, {partition: load(caught_up=True)}, {})
    assert lane(Backfill(behind_records=10), seen, partition) == "backfill"


@given(
    st.lists(st.tuples(st.integers(0, 3000), st.floats(0, 300), st.booleans()), min_size=10, max_size=10),
    st.lists(st.sampled_from(["default", "backfill", ""]), min_size=10, max_size=10),
    st.sampled_from([Backfill(behind_records=1000), Backfill(behind_seconds=100)]),
)
def test_a_second_look_at_the_same_lags_hands_nothing_back(
    lags: list[tuple[int, float, bool]], groups: list[str], backfill: Backfill
) -> None:
    loads = {
        p: Load(None, 0, 0.0, True) if up else Load(None, n, s, False) for p, (n, s, up) in zip(MANY, lags, strict=True)
    }
    before = {partition: group for partition, group in zip(MANY, groups, strict=True) if group}
    once = routes_of(MANY, OWN, backfill, Seen(before, loads, {}))
    again = routes_of(MANY, OWN, backfill, Seen(once, loads, {}))
    assert all(
        again[partition] == "default" for partition in MANY if before.get(partition) == "backfill" != once[partition]
    )
    third = routes_of(MANY, OWN, backfill, Seen(again, loads, {}))
    assert all(third[p] == "backfill" for p in MANY if once[p] == again[p] == "backfill")
