"""A link at one moment of its past."""

from strait.planning.history.sample import Sample, sample_of
from strait.state.schema import PartitionReport
from support.model.reports import plain_report


def row(lag: int, seconds: float) -> PartitionReport:
    figures = {"position": 0, "end": 0, "records": 0, "bytes": 0}
    return PartitionReport(topic="t", partition=0, state="copying", lag_records=lag, lag_seconds=seconds, **figures)


def test_all_slots_are_put_together_and_each_part_of_a_report_counts_once() -> None:
    two_parts = (
        plain_report(records_per_second=10.0, bytes_per_second=100.0, latency_ms_p99=5.0, partitions=(row(1, 0.5),)),
        plain_report(records_per_second=10.0, bytes_per_second=100.0, latency_ms_p99=5.0, partitions=(row(20, 3.0),)),
    )
    other = (plain_report(slot=1, records_per_second=1.0, partitions=(row(300, 1.0), row(-1, 0.0))),)
    found = sample_of(7, {("default", 0): two_parts, ("default", 1): other})
    assert found == Sample(7, 11.0, 100.0, 321, 3.0, 5.0)


def test_when_nothing_reported_nothing_is_known() -> None:
    assert sample_of(7, {}) == Sample(7)
    assert sample_of(7, {("default", 0): (plain_report(),)}) == Sample(7, 0.0, 0.0)
