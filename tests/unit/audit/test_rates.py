"""Rates and times as they are typed."""

import pytest
import typer

from strait.cli.options import rate, time_ms
from strait.text import bytes_per_second


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


def test_a_time_without_an_offset_is_utc():
    assert time_ms("1970-01-01T00:01") == time_ms("1970-01-01T00:01Z") == time_ms("1970-01-01T01:01+01:00") == 60_000
    assert time_ms(None) is None
    with pytest.raises(typer.BadParameter, match="not a time"):
        time_ms("yesterday")
