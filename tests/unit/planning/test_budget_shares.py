"""A budget is dealt out over the slots of all task groups, and stays so while loads only waver."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.config.links import BackfillBudget, Topics
from strait.config.rules import rule_of
from strait.model import TopicPartition
from strait.planning.assignment import budgets as dealing
from strait.planning.assignment.budgets import Lane, backfill_of, dealt_anew, limits_of
from strait.planning.assignment.slots import Place
from strait.state.schema import Budget, Plan, PlannedTopic

LIMITS = {"bytes_per_second": 1000, "classes": {"gold": 300}}
RULES = [{"match": "gold.*", "class": "gold"}]


def topics(**budget: Any) -> Topics:
    return Topics.model_validate({"budget": budget or LIMITS, "rules": [] if budget else RULES}, strict=False)


def budgets_of(settings: Topics, places: Mapping[TopicPartition, Place], *args: Any) -> dict[str, tuple[Budget, ...]]:
    class_of = {place.topic: rule_of(settings, place.topic).topic_class or "" for place in places}
    return dealing.budgets_of(limits_of(settings), class_of, places, *args)


def placed(topic: str, group: str, *slots: int | None) -> dict[TopicPartition, Place]:
    """Its partitions in this group, each in one of these slots."""
    return {TopicPartition(topic, number): Place(group, slot) for number, slot in enumerate(slots) if slot is not None}


def shares(found: dict[str, tuple[Budget, ...]]) -> dict[str, dict[str, tuple[float, ...]]]:
    return {group: {item.topic_class: item.slot_shares for item in budgets} for group, budgets in found.items()}


def plans(found: dict[str, tuple[Budget, ...]]) -> dict[str, Plan]:
    return {
        group: Plan(link="l", group=group, version=1, producer_id=1, slots=9, budgets=budgets, published_at_ms=0)
        for group, budgets in found.items()
    }


def test_before_anything_is_measured_shares_go_by_the_partitions_that_a_budget_is_for() -> None:
    places = placed("gold", "default", 0, 0, 0, 1) | placed("b", "default", 1, 1, None) | placed("c", "default", 0, 1)
    found = budgets_of(topics(), places, {"default": 2}, {}, {})
    assert shares(found) == {"default": {"": (0.5, 0.5), "gold": (0.75, 0.25)}}


def test_shares_are_of_the_whole_link_whichever_group_copies() -> None:
    places = placed("gold", "default", 0, 1) | placed("b", "bulk", 0, 0)
    found = budgets_of(topics(), places, {"default": 2, "bulk": 1}, {}, {})
    assert shares(found) == {
        "default": {"": (0.25, 0.25), "gold": (0.5, 0.5)},
        "bulk": {"": (0.5,), "gold": (0.0,)},
    }


def test_measured_loads_count_more_than_the_number_of_partitions() -> None:
    loads = {TopicPartition("a", 0): 9e6, TopicPartition("a", 1): 1e6, TopicPartition("a", 2): 1e6}
    found = budgets_of(topics(), placed("a", "default", 0, 1, 1), {"default": 2}, loads, {})
    first, second = shares(found)["default"][""]
    assert first > 0.75
    assert second == pytest.approx(1 - first)


LIVE, HISTORY = placed("live", "default", 0, 1), placed("old", "backfill", *[0] * 48)
WITH_LANE = {"default": 2, "backfill": 1}
BACKFILL = Lane("backfill")


def of_lane(
    limit: int, loads: dict[TopicPartition, float], previous: dict[str, Plan] | None = None, own: Lane = BACKFILL
) -> float:
    found = budgets_of(topics(bytes_per_second=limit), LIVE | HISTORY, WITH_LANE, loads, previous or {}, own)
    every = shares(found)
    assert sum(every["default"][""]) + sum(every["backfill"][""]) == pytest.approx(1)
    return every["backfill"][""][0]


@pytest.mark.parametrize(("live", "lane"), [(10e6, 0.7), (1e6, 0.95), (0.0, 0.95), (40e6, 0.05), (90e6, 0.05)])
def test_the_lane_gets_what_others_leave_however_large_its_backlog_is(live: float, lane: float) -> None:
    """A terabyte in 48 partitions counts as 1.7 GB a second, beside which 10 MB a second of live records would vanish."""
    loads = dict.fromkeys(LIVE, live / 2) | dict.fromkeys(HISTORY, 1e12 / 600 / 48)
    assert of_lane(50_000_000, loads) == pytest.approx(lane)


def test_until_others_are_measured_nearly_all_is_theirs() -> None:
    assert of_lane(1000, {}) == pytest.approx(0.05)
    assert of_lane(1000, dict.fromkeys(HISTORY, 1e9)) == pytest.approx(0.05)
    first, second = LIVE
    assert of_lane(1000, {first: 100.0}) == pytest.approx(0.7), "the other one counts as much"
    assert of_lane(1000, {first: 100.0, second: 0.0}) == pytest.approx(0.85)


@pytest.mark.parametrize(("own", "lane"), [(5_000_000, 0.1), (25_000_000, 0.5), (80_000_000, 0.7), (1, 0.05)])
def test_a_lane_with_a_budget_leaves_the_rest_to_the_others(own: int, lane: float) -> None:
    loads = dict.fromkeys(LIVE, 5e6) | dict.fromkeys(HISTORY, 1e9)
    limits = BackfillBudget(bytes_per_second=own)
    assert of_lane(50_000_000, loads, own=Lane("backfill", limits)) == pytest.approx(lane)
    places = LIVE | placed("old", "backfill", *[0] * 24, *[1] * 24)
    backfill = backfill_of(Lane("backfill", limits), places, {"default": 2, "backfill": 2}, loads, None)
    assert backfill is not None and backfill.budget is not None
    assert backfill.budget == Budget(bytes_per_second=own, slot_shares=(0.5, 0.5))


def test_outside_its_hours_the_lane_leaves_all_but_the_least() -> None:
    limits = BackfillBudget(hours=("22:00-06:00",), timezone="UTC")
    loads = dict.fromkeys(LIVE, 5e6) | dict.fromkeys(HISTORY, 1e9)
    for hour, share, late in ((12, 0.05, False), (23, 0.7, False)):
        lane = Lane.of("backfill", limits, hour * 3_600_000)
        assert of_lane(50_000_000, loads, own=lane) == pytest.approx(share)
        assert lane.takes_late is late
    assert Lane.of("backfill", BackfillBudget(bytes_per_second=9), 0).takes_late
    found = backfill_of(Lane("backfill", limits), LIVE | HISTORY, WITH_LANE, loads, None)
    assert found is not None and (found.budget, str(found.opening)) == (None, "22:00-06:00 UTC")


def test_without_history_and_without_others_the_lane_changes_nothing() -> None:
    for places in (LIVE, HISTORY):
        with_lane, without = (budgets_of(topics(), places, WITH_LANE, {}, {}, lane) for lane in (BACKFILL, None))
        assert with_lane == without


def test_shares_stay_while_loads_waver_and_follow_when_they_change() -> None:
    places, slots = placed("a", "default", 0, 1), {"default": 2}

    def of(first: float, second: float, previous: dict[str, Plan]) -> dict[str, tuple[Budget, ...]]:
        loads = {TopicPartition("a", 0): first, TopicPartition("a", 1): second}
        return budgets_of(topics(bytes_per_second=7), places, slots, loads, previous)

    begun = of(5e6, 5e6, {})
    assert of(5.5e6, 4.5e6, plans(begun)) == begun
    assert of(9e6, 1e6, plans(begun)) != begun
    assert budgets_of(topics(bytes_per_second=8), places, slots, {}, plans(begun))["default"][0].bytes_per_second == 8


def test_without_a_budget_there_is_none() -> None:
    assert budgets_of(Topics(), placed("a", "default", 0), {"default": 1}, {}, {}) == {"default": ()}


@given(st.lists(st.lists(st.none() | st.integers(0, 6), max_size=9), max_size=5))
def test_shares_add_up_to_one_whatever_is_copied(slots: list[list[int | None]]) -> None:
    places: dict[TopicPartition, Place] = {}
    for number, each in enumerate(slots):
        places |= placed(str(number), "ab"[number % 2], *each)
    found = budgets_of(topics(bytes_per_second=7), places, {"a": 7, "b": 7}, {}, {})
    every = [share for budgets in found.values() for budget in budgets for share in budget.slot_shares]
    assert len(every) == 14
    assert sum(every) == pytest.approx(1)


def test_what_a_group_may_use_is_dealt_anew_within_the_group() -> None:
    before = Budget(bytes_per_second=7, slot_shares=(0.3, 0.1))
    topic = PlannedTopic(source="a", destination="a", source_id="s", destination_id="d", slots=(None, 1))
    first, second = dealt_anew(before, [topic], 2).slot_shares
    assert (first, second) == (0.0, pytest.approx(0.4))


def test_a_group_without_a_share_gets_little_when_it_copies_again_for_the_others_have_all_of_it() -> None:
    before = Budget(bytes_per_second=100, slot_shares=(0.0, 0.0))
    topic = PlannedTopic(source="a", destination="a", source_id="s", destination_id="d", slots=(0, 0, 1, 1))
    assert dealt_anew(before, (topic,), 2).slot_shares == (0.025, 0.025)


@pytest.mark.parametrize("slots", [9, 11, 18, 21])
def test_the_last_slot_that_copies_gets_a_share_that_can_be_read(slots: int) -> None:
    """Equal shares of 9 slots add up to 1.0000000000000002."""
    (before,) = budgets_of(
        topics(bytes_per_second=7), placed("a", "default", *range(slots)), {"default": slots}, {}, {}
    )["default"]
    assert sum(before.slot_shares) > 1
    topic = PlannedTopic(source="a", destination="a", source_id="s", destination_id="d", slots=(0,))
    after = dealt_anew(before, [topic], slots)
    assert after.slot_shares == (1.0, *[0.0] * (slots - 1))
    assert Budget(bytes_per_second=7, slot_shares=after.slot_shares) == after


PLACES = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["gold", "a", "b"]), st.integers(0, 5)),
    st.one_of(
        st.builds(Place, st.just("default"), st.integers(0, 1)), st.builds(Place, st.just("backfill"), st.just(0))
    ),
    max_size=12,
)
LIMITED = st.one_of(
    st.none(),
    st.builds(BackfillBudget, bytes_per_second=st.integers(1, 5000)),
    st.just(BackfillBudget(hours=("22:00-06:00",), timezone="UTC")),
)


@given(PLACES, st.lists(st.floats(0, 1e9), min_size=12, max_size=12), LIMITED, st.integers(0, 23), st.booleans())
def test_whatever_is_copied_a_budget_is_dealt_once_and_nobody_who_copies_goes_without(
    places: dict[TopicPartition, Place], rates: list[float], limits: Any, hour: int, measured: bool
) -> None:
    """A slot without a share would not be limited at all."""
    loads = dict(zip(places, rates, strict=False)) if measured else {}
    lane = Lane.of("backfill", limits, hour * 3_600_000)
    found = budgets_of(topics(), places, WITH_LANE, loads, {}, lane)
    for name, dealt in ((name, shares(found)) for name in ("", "gold")):
        assert sum(sum(of_group[name]) for of_group in dealt.values()) == pytest.approx(1)
        for partition, place in places.items():
            assert name == "gold" != partition.topic or dealt[place.group][name][place.slot] > 0
        live = [place for at, place in places.items() if place.group == "default" and (not name or at.topic == name)]
        if lane.closed and live:
            assert dealt["backfill"][name][0] <= 0.05 + 1e-9
    own = backfill_of(lane, places, WITH_LANE, loads, None)
    if own is not None and own.budget is not None:
        assert own.budget.slot_shares == (1.0,)


@given(st.lists(st.floats(0, 0.6), min_size=1, max_size=4))
def test_live_records_wait_for_a_few_plans_at_most_while_history_is_copied(demands: list[float]) -> None:
    """``demands``: what live topics write, as fractions of the budget, each for some plans. What is measured is what was
    copied, so a share that is too small hides how much is written."""
    limit, plan_seconds = 50_000_000, 60.0
    previous: dict[str, Plan] = {}
    loads: dict[TopicPartition, float] = {}
    waiting = 0.0
    for demand in demands:
        for _ in range(20):
            found = budgets_of(topics(bytes_per_second=limit), LIVE | HISTORY, WITH_LANE, loads, previous, BACKFILL)
            previous = plans(found)
            allowed = limit * sum(found["default"][0].slot_shares) * plan_seconds
            copied = min(allowed, waiting + demand * limit * plan_seconds)
            waiting += demand * limit * plan_seconds - copied
            loads = dict.fromkeys(LIVE, copied / plan_seconds / len(LIVE)) | dict.fromkeys(HISTORY, 1e12 / 600 / 48)
        assert waiting == pytest.approx(0, abs=1)
