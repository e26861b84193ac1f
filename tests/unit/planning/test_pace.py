"""How fast partitions catch up, and what holds them back, from two reports of the same slot."""

from typing import Any

import pytest

from strait.model import TopicPartition
from strait.planning.history.pace import Pace, pace_of
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import status_of
from strait.state.report_records import PartitionReport, Report
from strait.state.schema import Budget, Plan, PlannedBackfill
from support.model.plans import classed_plan
from support.model.reports import plain_report

ORDERS, CLICKS = TopicPartition("orders", 0), TopicPartition("clicks", 0)


def plan(*budgets: Budget) -> Plan:
    return classed_plan({name: name for name in ("clicks", "orders")}, *budgets)


def row(topic: str, lag: int, copied_bytes: int = 0) -> PartitionReport:
    return PartitionReport(
        topic=topic,
        partition=0,
        state="copying" if lag else "caught_up",
        position=10_000 - lag,
        end=10_000,
        lag_records=lag,
        lag_seconds=1.0,
        records=0,
        bytes=copied_bytes,
    )


def said(at_ms: int, *rows: PartitionReport, **fields: Any) -> dict[tuple[str, int], tuple[Report, ...]]:
    return {("default", 0): (plain_report(at_ms=at_ms, partitions=rows, **fields),)}


def test_what_comes_nearer_will_have_caught_up() -> None:
    pace = pace_of(
        plan(), said(0, row("orders", 500), row("clicks", 10)), said(10_000, row("orders", 400), row("clicks", 20))
    )
    assert pace.seconds_left == {ORDERS: 40.0}


@pytest.mark.parametrize("other", [{"application": "2"}, {"started_at_ms": 5}, {"at_ms": 10_000}, {"group": "gold"}])
def test_only_what_the_same_slot_said_earlier_counts(other: dict[str, Any]) -> None:
    earlier = {("default", 0): (plain_report(**{"at_ms": 0, "partitions": (row("orders", 500),)} | other),)}
    assert pace_of(plan(), earlier, said(10_000, row("orders", 400))).seconds_left == (
        {ORDERS: 40.0} if other == {"group": "gold"} else {}
    )


def test_a_budget_that_is_used_up_holds_back_what_lags_and_shares_it() -> None:
    budget = Budget(topic_class="orders", bytes_per_second=1000, slot_shares=(1.0,))
    earlier = said(0, row("orders", 500), row("clicks", 500))
    full = said(10_000, row("orders", 400, 9_500), row("clicks", 400, 90_000))
    assert pace_of(plan(budget), earlier, full).throttled == {ORDERS: "class orders may write 1,000 bytes/s, and does"}
    half = said(10_000, row("orders", 400, 5_000), row("clicks", 400, 90_000))
    assert pace_of(plan(budget), earlier, half).throttled == {}
    caught_up = said(10_000, row("orders", 0, 9_500))
    assert pace_of(plan(budget), earlier, caught_up).throttled == {}


def test_the_budget_of_a_link_is_used_by_all() -> None:
    budget = Budget(bytes_per_second=1000, slot_shares=(1.0,))
    earlier = said(0, row("orders", 500), row("clicks", 500))
    now = said(10_000, row("orders", 400, 5_000), row("clicks", 400, 5_000))
    assert set(pace_of(plan(budget), earlier, now).throttled) == {ORDERS, CLICKS}


def rows(pace: Pace) -> list[PartitionStatus]:
    now = said(10_000, row("orders", 400), row("clicks", 0))
    return list(status_of("l", "default", plan(), now, 10_000, pace=pace).partitions)


def test_the_status_tells_how_long_and_why() -> None:
    clicks, orders = rows(Pace({ORDERS: 300.0, CLICKS: 9.0}, {}))
    assert (orders.state, orders.reason, orders.detail) == ("copying", "", "about 5 min until caught up")
    assert (clicks.state, clicks.detail, clicks.seconds_to_catch_up) == ("caught_up", "", None)
    _, held = rows(Pace({ORDERS: 300.0}, {ORDERS: "no faster"}))
    assert (held.state, held.reason, held.detail) == ("copying", "throttled", "no faster")
    assert held.seconds_to_catch_up == 300.0


def test_a_rate_is_what_was_copied_between_two_reports_of_the_same_start() -> None:
    before, after = row("orders", 500), row("orders", 500).model_copy(update={"records": 300})
    found = pace_of(plan(), said(0, before), said(10_000, after))
    assert found.records_per_second == {ORDERS: 30.0}
    status = status_of("l", "default", plan(), said(10_000, after), 10_000, pace=found)
    assert {item.topic: item.records_per_second for item in status.partitions} == {"clicks": None, "orders": 30.0}
    restarted = pace_of(plan(), said(0, before), said(10_000, after, started_at_ms=5_000))
    assert restarted.records_per_second == {}


def test_the_budget_of_the_task_group_is_named_as_such() -> None:
    own = PlannedBackfill(budget=Budget(bytes_per_second=1000, slot_shares=(1.0,)))
    limited = plan(Budget(bytes_per_second=9000, slot_shares=(1.0,))).model_copy(update={"backfill": own})
    earlier, full = said(0, row("orders", 500)), said(10_000, row("orders", 400, copied_bytes=9_900))
    assert pace_of(limited, earlier, full).throttled == {ORDERS: "task group default may write 1,000 bytes/s, and does"}
