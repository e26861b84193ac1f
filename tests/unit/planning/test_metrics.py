from strait.planning.metrics import TopicMetrics, topic_metrics
from strait.planning.status import status_of
from strait.state.schema import PartitionReport, Plan, PlannedTopic, Report, Run, Waiting
from support.reports import plain_report


def plan(topics: dict[str, int], waiting: tuple[Waiting, ...] = ()) -> Plan:
    planned = tuple(
        PlannedTopic(source=t, destination=t, source_id="s", destination_id="d", slots=(0,) * n)
        for t, n in topics.items()
    )
    return Plan(
        link="l", group="default", version=1, producer_id=7, slots=1, topics=planned, waiting=waiting, published_at_ms=0
    )


def entry(partition: int, position: int, *, lag: int = 0, reason: str | None = None) -> PartitionReport:
    return PartitionReport(
        topic="orders",
        partition=partition,
        state="waiting" if reason else "copying",
        reason=reason,
        position=position,
        end=position + lag,
        lag_records=lag,
        lag_seconds=lag / 10,
        records=0,
        bytes=0,
    )


def reports(at_ms: int, *entries: PartitionReport) -> dict[tuple[str, int], tuple[Report, ...]]:
    report = plain_report(at_ms=at_ms, partitions=entries)
    return {("default", 0): (report,)}


def run(partition: int, source_base: int, sequence_base: int = 0) -> Run:
    return Run(
        topic="orders",
        partition=partition,
        destination="orders",
        source_id="s",
        destination_id="d",
        source_base=source_base,
        destination_base=0,
        sequence_base=sequence_base,
        sequence_end=0,
        checkpoint_at_ms=0,
    )


def figures(of: Plan, now: dict, before: dict | None = None, runs: dict | None = None) -> list[TopicMetrics]:
    return topic_metrics(status_of("l", "default", of, now, now_ms=3000), runs or {}, before or {}, now)


def test_records_are_counted_from_where_copying_began_and_across_gaps():
    runs = {("orders", 0): (run(0, 100), run(0, 500, sequence_base=30))}
    (orders,) = figures(plan({"orders": 1}), reports(3000, entry(0, 510)), runs=runs)
    assert orders.records == 30 + 10


def test_the_rate_is_what_all_partitions_moved_between_two_looks():
    before, now = reports(1000, entry(0, 0), entry(1, 50)), reports(3000, entry(0, 100), entry(1, 150))
    (orders,) = figures(plan({"orders": 2}), now, before)
    assert orders.records_per_second == 100


def test_lag_is_the_sum_in_records_and_the_worst_in_seconds():
    (orders,) = figures(plan({"orders": 2}), reports(3000, entry(0, 5, lag=10), entry(1, 5, lag=30)))
    assert (orders.lag_records, orders.lag_seconds) == (40, 3.0)


def test_what_waits_is_counted_by_reason():
    now = reports(3000, entry(0, 5), entry(1, 5, reason="corrupt_batch"), entry(2, 5, reason="corrupt_batch"))
    (orders,) = figures(plan({"orders": 3}), now)
    assert orders.waiting == {"corrupt_batch": 2}
    assert "2 of 3 partitions wait: corrupt_batch" in str(orders)


def test_a_topic_that_waits_as_a_whole_and_partitions_that_nobody_reports_are_not_forgotten():
    waiting = (Waiting(topic="lost", reason="source_missing", detail=""),)
    lost, orders = figures(plan({"orders": 3}, waiting), reports(3000, entry(0, 5)))
    assert (lost.topic, lost.partitions, lost.waiting) == ("lost", 0, {"source_missing": 1})
    assert orders.starting == 2
