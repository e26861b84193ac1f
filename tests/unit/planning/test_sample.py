"""A link at one moment of its past."""

from strait.planning.history.sample import Sample, sample_of, samples_of
from strait.state.report_changes import HistoryPoint
from strait.state.report_records import PartitionReport
from support.model.reports import plain_report


def row(lag: int, seconds: float, partition: int = 0) -> PartitionReport:
    figures = {"position": 0, "end": 0, "records": 0, "bytes": 0}
    return PartitionReport(
        topic="t", partition=partition, state="copying", lag_records=lag, lag_seconds=seconds, **figures
    )


def test_all_slots_are_put_together_and_each_part_of_a_report_counts_once() -> None:
    two_parts = (
        plain_report(
            records_per_second=10.0,
            bytes_per_second=100.0,
            latency_ms_p50=2.0,
            latency_ms_p99=5.0,
            partitions=(row(1, 0.5),),
        ),
        plain_report(
            records_per_second=10.0,
            bytes_per_second=100.0,
            latency_ms_p50=2.0,
            latency_ms_p99=5.0,
            partitions=(row(20, 3.0, 1),),
        ),
    )
    other = (plain_report(slot=1, records_per_second=1.0, partitions=(row(300, 1.0, 2), row(-1, 0.0, 3))),)
    found = sample_of(7, {("default", 0): two_parts, ("default", 1): other})
    assert found == Sample(7, 11.0, 100.0, 321, 3.0, 5.0, 2.0)


def test_a_partition_that_has_moved_to_another_slot_counts_once_by_its_newest_report() -> None:
    before = (plain_report(at_ms=1_000, partitions=(row(500, 9.0),)),)
    now = (plain_report(slot=1, at_ms=2_000, partitions=(row(30, 1.0),)),)
    for slots in ((before, now), (now, before)):
        found = sample_of(7, {("default", number): parts for number, parts in enumerate(slots)})
        assert (found.lag_records, found.lag_seconds) == (30, 1.0)


def test_when_nothing_reported_nothing_is_known() -> None:
    assert sample_of(7, {}) == Sample(7)
    assert sample_of(7, {("default", 0): (plain_report(),)}) == Sample(7, 0.0, 0.0)


def point(slot: int, at_ms: int, seconds: float, records: int, lag: int | None = None) -> HistoryPoint:
    return HistoryPoint(
        group="default", slot=slot, span="minute", at_ms=at_ms, seconds=seconds, records=records, lag_records=lag
    )


def test_a_step_of_the_past_averages_rates_over_what_was_observed_and_adds_up_slots() -> None:
    points = [
        point(0, 0, 60.0, 600, 5),
        point(0, 60_000, 20.0, 200, 7),  # the slot was started anew in this minute
        point(0, 90_000, 30.0, 300, None),
        point(1, 0, 60.0, 60, 100),
        point(1, 60_000, 60.0, 60, 90),
    ]
    assert samples_of(points, 120_000, 0, 240_000) == [
        Sample(120_000, records_per_second=11.0, bytes_per_second=0.0, lag_records=107),
        Sample(240_000),  # nothing is known of it, which is not 0
    ]
