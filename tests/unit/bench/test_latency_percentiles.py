"""Percentiles are those of records that were really measured: nearest rank, nothing between two of them."""

import pytest

from mm2.latency import percentiles
from strait.errors import MeasurementError

MS = 1_000_000


def test_percentiles_of_a_thousand_known_times():
    found = percentiles(n * MS for n in range(1000, 0, -1))
    assert (found.p50_ms, found.p90_ms, found.p99_ms, found.p999_ms) == (500, 900, 990, 999)
    assert (found.records, found.max_ms) == (1000, 1000)


def test_one_record_is_every_percentile():
    found = percentiles([7 * MS])
    assert (found.p50_ms, found.p999_ms, found.max_ms) == (7, 7, 7)


def test_no_record_is_an_error_and_not_a_zero():
    with pytest.raises(MeasurementError, match="no record"):
        percentiles([])
