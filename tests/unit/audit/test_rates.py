"""Rates and times as they are typed, and rates and sizes as they are shown."""

import pytest
import typer

from strait.cli.options import rate, time_ms
from strait.planning.status.figures import megabytes, per_second
from strait.text import bytes_per_second, data_size


@pytest.mark.parametrize(
    ("text", "found"),
    [("", 0), ("50MB/s", 50_000_000), ("2g", 2_000_000_000), ("700", 700), ("60 kB/s", 60_000), ("5b", 5)],
)
def test_a_rate_is_read_with_its_unit(text, found):
    assert rate(text) == bytes_per_second(text) == found


@pytest.mark.parametrize("text", ["fast", "-1", "1.5MB/s", "MB", "1" * 40])
def test_anything_else_is_refused(text):
    with pytest.raises(typer.BadParameter, match="not a rate"):
        rate(text)


@pytest.mark.parametrize(
    ("rate", "figure", "mb"),
    [
        *((0, "0", "0.0"), (0.02, "0.02", "<0.001"), (0.0001, "<0.001", "<0.001"), (0.5, "0.5", "<0.001")),
        *((12.4, "12", "<0.001"), (1234, "1,234", "0.0012"), (60_000, "60,000", "0.06"), (3.46e6, "3,460,000", "3.5")),
        *((2.5e9, "2,500,000,000", "2,500.0"), (None, "-", "-"), (-1, "-", "-")),
    ],
)
def test_only_a_rate_of_0_is_shown_as_0(rate, figure, mb):
    assert (per_second(rate), megabytes(rate)) == (figure, mb)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        *((0, "0 B"), (0.4, "0.4 B"), (999, "999 B"), (999.6, "1 kB"), (60_000, "60.0 kB"), (99_960, "100 kB")),
        *((250_000, "250 kB"), (999_600, "1 MB"), (34_500_000_000, "34.5 GB"), (2e18, "2,000 PB")),
    ],
)
def test_a_size_has_the_unit_that_fits(size, text):
    assert data_size(size) == text


def test_a_time_without_an_offset_is_utc():
    assert time_ms("1970-01-01T00:01") == time_ms("1970-01-01T00:01Z") == time_ms("1970-01-01T01:01+01:00") == 60_000
    assert time_ms(None) is None
    with pytest.raises(typer.BadParameter, match="not a time"):
        time_ms("yesterday")
