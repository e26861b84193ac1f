"""What is made of the looks at a draining topic."""

import pytest

from mm2.drain import Sample, figures
from strait.errors import MeasurementError

BYTES = 2 * 10**9


def sample(at: float, records: int, copier: float) -> Sample:
    return Sample(at, records, copier, copier * 0.5, broker_cpu_seconds=at * 0.5, machine_cpu_seconds=at * 2)


SAMPLES = [
    sample(1.0, 0, 5.0),  # starting: burns CPU, copies nothing
    sample(4.0, 200, 8.0),
    sample(6.0, 600, 10.0),
    sample(8.0, 1000, 11.0),
]


def test_the_window_opens_with_the_first_arrival_and_does_not_count_it():
    found = figures(SAMPLES, BYTES)
    assert found.seconds_to_first_record == 4.0
    assert found.drain_seconds == 4.0
    assert found.records_per_second == 800 / 4.0
    assert found.bytes_per_second == pytest.approx(0.8 * BYTES / 4.0)


def test_cpu_of_the_start_is_kept_apart():
    found = figures(SAMPLES, BYTES)
    assert found.cpu_seconds == 3.0
    assert found.cpu_seconds_per_gb == pytest.approx(3.0 / (0.8 * 2))
    assert found.cpu_seconds_whole == 11.0


def test_cpu_of_the_slots_is_told_from_that_of_the_tree():
    assert figures(SAMPLES, BYTES).slot_cpu_seconds_per_gb == pytest.approx(3.0 * 0.5 / (0.8 * 2))


def test_the_later_half_leaves_out_what_came_before_it():
    found = figures(SAMPLES, BYTES)
    assert found.records_per_second_later_half == 400 / 2.0
    assert found.cpu_seconds_per_gb_later_half == pytest.approx(1.0 / (0.4 * 2))


def test_the_whole_rate_counts_from_the_start_of_the_copier():
    assert figures(SAMPLES, BYTES).records_per_second_whole == 1000 / 8.0


def test_cpu_that_neither_copier_nor_brokers_took_was_taken_by_others(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    machine, brokers, copier = 8.0, 2.0, 3.0
    assert figures(SAMPLES, BYTES).other_cpu_share == pytest.approx((machine - brokers - copier) / (2 * 4.0))


def test_records_that_all_come_at_once_cannot_be_measured():
    with pytest.raises(MeasurementError, match="at once"):
        figures([sample(1.0, 0, 1.0), sample(2.0, 1000, 2.0)], BYTES)
