from strait.exporter.place_metrics import PLACES
from strait.planning.status.metrics import TopicMetrics, missing_destination_partitions, topic_metrics
from strait.planning.status.status import status_of
from strait.state.offset_map import Gap, pack
from strait.state.report_records import PartitionReport, Report
from strait.state.schema import OffsetMapping, Plan, PlannedTopic, Waiting
from support.model.reports import plain_report


def plan(topics: dict[str, int], waiting: tuple[Waiting, ...] = ()) -> Plan:
    planned = tuple(
        PlannedTopic(source=t, destination=t, source_id="s", destination_id="d", slots=(0,) * n)
        for t, n in topics.items()
    )
    return Plan(
        link="l", group="default", version=1, producer_id=7, slots=1, topics=planned, waiting=waiting, published_at_ms=0
    )


def entry(
    partition: int, position: int, *, lag: int = 0, reason: str | None = None, log_start: int = -1
) -> PartitionReport:
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
        log_start=log_start,
    )


def reports(at_ms: int, *entries: PartitionReport) -> dict[tuple[str, int], tuple[Report, ...]]:
    report = plain_report(at_ms=at_ms, partitions=entries)
    return {("default", 0): (report,)}


def run(
    partition: int, source_base: int, sequence_base: int = 0, gaps: str = "", at_ms: int = 0, destination_id: str = "d"
) -> OffsetMapping:
    return OffsetMapping(
        topic="orders",
        partition=partition,
        destination="orders",
        source_id="s",
        destination_id=destination_id,
        source_base=source_base,
        destination_base=0,
        sequence_base=sequence_base,
        gaps=gaps,
        sequence_end=0,
        checkpoint_at_ms=at_ms,
    )


def figures(of: Plan, now: dict, before: dict | None = None, runs: dict | None = None) -> list[TopicMetrics]:
    return topic_metrics(status_of("l", "default", of, now, now_ms=3000), runs or {}, before or {}, now)


def test_records_are_counted_from_where_copying_began_and_across_gaps():
    runs = {("orders", 0): (run(0, 100), run(0, 500, sequence_base=30))}
    (orders,) = figures(plan({"orders": 1}), reports(3000, entry(0, 510)), runs=runs)
    assert orders.records == 30 + 10


def test_offsets_without_a_record_do_not_count():
    gaps = pack([Gap(10, 150), Gap(20, 170)], sequence_base=0, source_base=100)
    for position, copied in ((100, 0), (110, 10), (149, 10), (151, 11), (170, 20), (175, 25)):
        (orders,) = figures(
            plan({"orders": 1}), reports(3000, entry(0, position)), runs={("orders", 0): (run(0, 100, gaps=gaps),)}
        )
        assert (position, orders.records) == (position, copied)


def test_what_an_earlier_destination_topic_held_does_not_count():
    runs = {("orders", 0): (run(0, 0, at_ms=2, destination_id="d2"), run(0, 500, sequence_base=400, at_ms=1))}
    (orders,) = figures(plan({"orders": 1}), reports(3000, entry(0, 510)), runs=runs)
    assert orders.records == 510


def test_the_first_partition_that_retention_will_reach_is_told():
    now = reports(3_600_000, entry(0, 5, lag=1, log_start=1), entry(1, 9, lag=1, log_start=1))
    then = reports(0, entry(0, 5, log_start=0), entry(1, 9, log_start=0))
    status = status_of("l", "default", plan({"orders": 2}), now, now_ms=3_600_000, earlier=then)
    (orders,) = topic_metrics(status, {}, {}, now)
    assert orders.seconds_to_loss == 4 * 3600
    assert str(orders).endswith("retention deletes what is not copied in 4 h")
    (unknown,) = figures(plan({"orders": 2}), now)
    assert unknown.seconds_to_loss is None


def test_the_rate_is_what_all_partitions_moved_between_two_looks():
    before, now = reports(1000, entry(0, 0), entry(1, 50)), reports(3000, entry(0, 100), entry(1, 150))
    (orders,) = figures(plan({"orders": 2}), now, before)
    assert orders.records_per_second == 100


def test_lag_is_the_sum_in_records_and_the_worst_in_seconds():
    (orders,) = figures(plan({"orders": 2}), reports(3000, entry(0, 5, lag=10), entry(1, 5, lag=30)))
    assert (orders.lag_records, orders.lag_seconds) == (40, 3.0)


def test_the_worst_lag_in_seconds_is_not_zero_while_that_of_another_partition_is_unknown():
    halted = entry(0, 5, lag=10, reason="foreign_writer").model_copy(update={"lag_seconds": 0.0})
    (orders,) = figures(plan({"orders": 2}), reports(3000, halted, entry(1, 5)))
    assert (orders.lag_records, orders.lag_seconds) == (10, None)
    (orders,) = figures(plan({"orders": 2}), reports(3000, halted, entry(1, 5, lag=20)))
    assert (orders.lag_records, orders.lag_seconds) == (30, 2.0)
    (orders,) = figures(plan({"orders": 2}), reports(3000, entry(0, 5), entry(1, 5)))
    assert (orders.lag_records, orders.lag_seconds) == (0, 0.0)


def test_how_long_records_are_held_back_is_not_zero_while_that_of_another_partition_is_unknown():
    def held(since_ms: int) -> dict[tuple[str, int], tuple[Report, ...]]:
        return reports(3000, entry(0, 5).model_copy(update={"held_back_records": 3, "held_since_ms": since_ms}))

    def both(of: dict[tuple[str, int], tuple[Report, ...]]) -> list[float | None]:
        (orders,) = figures(plan({"orders": 2}), of)
        gauge = next(one for one in PLACES if one.name == "strait_held_back_seconds")
        return [
            orders.held_back_seconds,
            gauge.value(status_of("l", "default", plan({"orders": 2}), of, 3000).partitions),
        ]

    assert both(reports(3000, entry(0, 5))) == [None, None]
    assert both(held(1000)) == [2.0, 2.0]
    assert both(reports(3000, entry(0, 5), entry(1, 5))) == [0.0, 0.0]


def test_what_waits_is_counted_by_reason():
    now = reports(3000, entry(0, 5), entry(1, 5, reason="corrupt_batch"), entry(2, 5, reason="corrupt_batch"))
    (orders,) = figures(plan({"orders": 3}), now)
    assert orders.waiting == {"corrupt_batch": 2}
    assert "2 of 3 partitions waiting: corrupt_batch" in str(orders)


def test_a_topic_that_waits_as_a_whole_and_partitions_that_nobody_reports_are_not_forgotten():
    waiting = (Waiting(topic="lost", reason="source_missing", detail=""),)
    lost, orders = figures(plan({"orders": 3}, waiting), reports(3000, entry(0, 5)))
    assert (lost.topic, lost.partitions, lost.waiting) == ("lost", 0, {"source_missing": 1})
    assert orders.starting == 2


def test_partitions_without_a_destination_are_counted_under_mirus_name() -> None:
    waiting = (
        Waiting(topic="new", partitions=(0, 1, 2), reason="destination_missing", detail=""),
        Waiting(topic="orders", partitions=(4,), reason="destination_has_fewer_partitions", detail=""),
        Waiting(topic="orders", partitions=(0, 1), reason="source_leaderless", detail=""),
        Waiting(topic="gone", reason="source_missing", detail=""),
    )
    assert missing_destination_partitions(plan({"orders": 5}, waiting)) == 4
