"""Load is what producers write and what waits, not what is copied; slots follow it without flapping."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.config.groups import Group
from strait.config.links import Link
from strait.model import TopicPartition
from strait.planning.history.load import (
    CATCH_UP_SECONDS,
    MOST_PARTITIONS_PER_SLOT,
    Load,
    cores_for,
    depends_on_load,
    loads_of,
    rates,
    slots_for,
)
from strait.state.report_records import PartitionReport, Report
from strait.state.schema import Plan
from support.model.reports import plain_report

ORDERS = TopicPartition("orders", 0)
PARTITIONS = [TopicPartition("t", number) for number in range(10)]


def item(end: int, *, lag: int = 0, records: int = 100, size: int = 1000, **changed: Any) -> PartitionReport:
    values = {
        "topic": "orders",
        "partition": 0,
        "state": "copying" if lag else "caught_up",
        "position": end - lag,
        "end": end,
        "lag_records": lag,
        "lag_seconds": 0.0,
        "records": records,
        "bytes": records * size,
    }
    return PartitionReport(**values | changed)


def said(at_ms: int, *items: PartitionReport, group: str = "default", slot: int = 0) -> Report:
    return plain_report(group=group, slot=slot, at_ms=at_ms, partitions=items)


def looked(before: Report | None, now: Report, now_ms: int | None = None) -> dict[TopicPartition, Load]:
    earlier = {} if before is None else {(before.group, before.slot): (before,)}
    return loads_of(earlier, {(now.group, now.slot): (now,)}, now.at_ms if now_ms is None else now_ms)


def test_load_is_what_was_written_meanwhile_however_fast_it_was_copied() -> None:
    slow = looked(said(0, item(0)), said(20_000, item(2000, records=1)))
    fast = looked(said(0, item(0)), said(20_000, item(2000, records=50_000)))
    assert rates(slow) == rates(fast) == {ORDERS: pytest.approx(100 * 1000)}


def test_what_waits_counts_so_that_it_is_worked_off() -> None:
    backlog = looked(said(0, item(600_000)), said(20_000, item(600_000, lag=600_000)))
    assert rates(backlog) == {ORDERS: pytest.approx(600_000 * 1000 / CATCH_UP_SECONDS)}


def test_a_partition_that_has_moved_is_measured_all_the_same() -> None:
    before, now = said(0, item(0)), said(20_000, item(2000), group="backfill", slot=3)
    assert rates(looked(before, now)) == {ORDERS: pytest.approx(100_000)}


@pytest.mark.parametrize(
    ("before", "now", "known"),
    [
        (None, item(2000), None),
        (said(15_000, item(0)), item(2000), None),
        (said(0, item(-1)), item(2000), None),
        (said(0, item(0, records=0)), item(2000, records=0, lag=2000), None),
        (said(0, item(0, records=0)), item(0, records=0), 0.0),
        (said(0, item(5000)), item(2000), 0.0),
    ],
    ids=["one look", "too close", "end unknown", "size unknown", "idle", "end went back"],
)
def test_what_cannot_be_known_is_not_guessed(before: Report | None, now: PartitionReport, known: float | None) -> None:
    found = looked(before, said(20_000, now))
    assert found[ORDERS].bytes_per_second == known
    assert rates(found) == ({} if known is None else {ORDERS: known})


def test_silent_slots_and_partitions_without_an_end_say_nothing() -> None:
    assert looked(None, said(0, item(10)), now_ms=60_000) == {}
    assert looked(None, said(0, item(-1))) == {}


def group(**settings: Any) -> Group:
    return Group(**{"slots": 1, "max_slots": 8, "slot_bytes_per_second": 10_000_000} | settings)


@pytest.mark.parametrize(
    ("total", "previous", "expected"),
    [
        (5e6, 0, 1),  # the least at first
        (15e6, 1, 2),
        (75e6, 1, 8),
        (999e6, 2, 8),  # never more than configured
        (19e6, 2, 2),
        (15e6, 3, 3),  # two would be fuller than is sure to last
        (13e6, 3, 2),
        (0, 8, 1),
    ],
)
def test_slots_follow_the_load_at_once_upwards_and_carefully_downwards(
    total: float, previous: int, expected: int
) -> None:
    assert slots_for(group(), PARTITIONS, dict.fromkeys(PARTITIONS, total / 10), previous) == expected


def test_without_bounds_the_number_of_slots_is_as_configured() -> None:
    assert slots_for(group(slots=3, max_slots=None), PARTITIONS, dict.fromkeys(PARTITIONS, 1e9), 1) == 3


def test_slots_are_kept_while_part_of_the_load_is_not_known_and_never_outnumber_partitions() -> None:
    assert slots_for(group(), PARTITIONS, {}, 5) == 5
    assert slots_for(group(), PARTITIONS, {PARTITIONS[0]: 1.0}, 5) == 5
    assert slots_for(group(), PARTITIONS[:3], dict.fromkeys(PARTITIONS, 9e9), 1) == 3
    assert slots_for(group(), [], {}, 0) == 1


def test_a_slot_gets_no_more_partitions_than_it_can_take() -> None:
    many = [TopicPartition("t", number) for number in range(2 * MOST_PARTITIONS_PER_SLOT + 1)]
    assert slots_for(group(), many, {}, 0) == 3
    assert slots_for(group(), many, dict.fromkeys(many, 0.0), 8) == 3
    assert slots_for(group(slots=1, max_slots=2), many, {}, 0) == 2


@given(st.lists(st.floats(0, 1e9), min_size=10, max_size=10), st.integers(0, 12), st.integers(1, 8), st.integers(0, 8))
def test_a_second_look_at_the_same_load_keeps_the_slots(rate: list[float], before: int, least: int, more: int) -> None:
    bounds, measured = group(slots=least, max_slots=least + more), dict(zip(PARTITIONS, rate, strict=True))
    once = slots_for(bounds, PARTITIONS, measured, before)
    assert least <= once <= least + more
    assert slots_for(bounds, PARTITIONS, measured, once) == once


def link(**settings: Any) -> Link:
    base = {"source": "a", "destination": "b", "groups": {"default": {"slots": 1}}}
    return Link.model_validate(base | settings, strict=False)


def test_loads_are_looked_at_only_where_something_depends_on_them() -> None:
    assert not depends_on_load(link())
    assert depends_on_load(link(groups={"default": {"slots": 1, "max_slots": 2}}))
    assert depends_on_load(link(groups={"default": {}, "bulk": {}}))


def test_a_local_application_has_room_for_all_slots_that_may_come_and_a_cluster_s_only_for_those_that_are() -> None:
    plan = Plan(link="l", group="default", version=1, producer_id=1, slots=2, published_at_ms=0)
    groups = {"default": {"slots": 1, "max_slots": 4}}
    assert cores_for(link(groups=groups), plan) == 4
    assert cores_for(link(groups=groups, spark={"master": "spark://h:7077"}), plan) == 2
    assert cores_for(link(), plan.model_copy(update={"group": "gone", "slots": 3})) == 3
