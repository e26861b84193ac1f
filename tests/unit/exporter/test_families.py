"""What metrics are made of an observation."""

import time

from strait.exporter.families import batches, budget_use, traffic
from strait.exporter.observation import Observation
from strait.state.report_records import PartitionReport, ZoneTraffic
from strait.state.schema import Budget
from strait.wire.shapes import Built
from support.model.plans import classed_plan
from support.model.reports import plain_report

CLASSES = {"orders": "gold", "refunds": "gold", "clicks": "bulk", "rest": ""}
BUDGETS = tuple(
    Budget(topic_class=one, bytes_per_second=1000, slot_shares=(0.5, 0.5)) for one in ("", "bulk", "gold", "unused")
)


def row(topic: str, copied_bytes: int) -> PartitionReport:
    figures = {"position": 0, "end": 0, "lag_records": 0, "lag_seconds": 0.0, "records": 0}
    return PartitionReport(topic=topic, partition=0, state="copying", bytes=copied_bytes, **figures)


def seen(budgets: tuple[Budget, ...] = BUDGETS) -> Observation:
    parts = (
        plain_report(batches=10, built={"merged": 3}, partitions=(row("orders", 1), row("clicks", 10))),
        plain_report(batches=10, built={"merged": 3}, partitions=(row("refunds", 100), row("rest", 1000))),
    )
    reports = {("default", 0): parts, ("default", 1): parts, ("gone", 0): parts}
    return Observation(
        "l", "a", "b", time.monotonic(), plans={"default": classed_plan(CLASSES, *budgets)}, reports=reports
    )


def test_a_topic_counts_towards_its_class_and_the_link_once_each() -> None:
    assert dict(budget_use(seen())) == {
        ("default", "0", ""): 1111,
        ("default", "0", "bulk"): 10,
        ("default", "0", "gold"): 101,
        ("default", "0", "unused"): 0,
    }
    assert not dict(budget_use(seen(budgets=())))


def test_batches_are_told_apart_by_why_they_were_built() -> None:
    counted = {how: value for (_, _, how), value in batches(seen())}
    assert counted == {"passed": 7} | {str(why): 3 if why is Built.MERGED else 0 for why in Built}


def test_an_unknown_zone_is_called_unknown_and_traffic_without_zones_is_not_told() -> None:
    zones = (
        ZoneTraffic(cluster="source", from_zone="south", to_zone="south", bytes=95),
        ZoneTraffic(cluster="destination", from_zone="south", to_zone="", bytes=5),
    )
    reports = {("default", 0): (plain_report(traffic=zones),), ("default", 1): (plain_report(),)}
    observation = Observation(
        "l", "a", "b", time.monotonic(), plans={"default": classed_plan(CLASSES)}, reports=reports
    )
    assert dict(traffic(observation)) == {
        ("default", "0", "source", "south", "south"): 95,
        ("default", "0", "destination", "south", "unknown"): 5,
    }
