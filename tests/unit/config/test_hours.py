"""Hours of the day: over midnight, in any time zone, and on the days on which its clocks are changed."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strait.config.hours import Hours, checked_span, checked_zone, clock

BERLIN = "Europe/Berlin"
MINUTE_MS = 60_000


def at(text: str, zone: str = BERLIN) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def test_hours_may_cross_midnight() -> None:
    night = Hours(("22:00-06:00",), BERLIN)
    assert [night.is_open(at(f"2026-11-26T{time}")) for time in ("21:59", "22:00", "05:59", "06:00")] == [
        False,
        True,
        True,
        False,
    ]
    assert night.next_change(at("2026-11-26T12:34:56")) == at("2026-11-26T22:00")
    assert night.next_change(at("2026-11-26T23:00")) == at("2026-11-27T06:00")
    assert clock(at("2026-11-26T22:00"), BERLIN) == "2026-11-26 22:00 Europe/Berlin (21:00 UTC)"


def test_a_day_may_end_at_24_and_hours_that_never_end_have_no_change() -> None:
    assert Hours(("20:00-24:00",), "UTC").next_change(at("2026-11-26T21:00", "UTC")) == at("2026-11-27T00:00", "UTC")
    assert Hours(("00:00-24:00",), "UTC").next_change(0) is None
    assert Hours(("00:00-12:00", "12:00-24:00"), "UTC").next_change(5) is None
    assert Hours(("00:00-24:00",), "UTC").elapsing(0)(12.5) == 12.5


@pytest.mark.parametrize(
    ("begin", "open_seconds", "takes"),
    [
        ("2026-11-26T22:00", 3600, 3600),
        ("2026-11-26T12:00", 3600, 11 * 3600),
        ("2026-11-26T05:00", 2 * 3600, 18 * 3600),
        ("2026-11-26T22:00", 100 * 8 * 3600, 99 * 24 * 3600 + 8 * 3600),
    ],
)
def test_work_takes_as_long_as_the_hours_need(begin: str, open_seconds: float, takes: float) -> None:
    assert Hours(("22:00-06:00",), BERLIN).elapsing(at(begin))(open_seconds) == takes


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("22-06", "not a span"),
        ("25:00-06:00", "not a span"),
        ("06:00-24:01", "not a span"),
        ("06:00-06:00", "is empty"),
    ],
)
def test_what_is_no_span_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        checked_span(text)


@pytest.mark.parametrize("name", ["Europe/Berlni", "Europe", "../etc/passwd", "", "/etc/localtime", "x\0y"])
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is not an IANA time zone"):
        checked_zone(name)
    assert checked_zone(BERLIN) == BERLIN


MINUTES = st.integers(0, 24 * 60 - 1)
CHANGES = [at("2026-03-29T01:30"), at("2026-10-25T00:30"), at("2026-11-26T12:00")]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(MINUTES, MINUTES).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=3),
    st.sampled_from([BERLIN, "Australia/Lord_Howe", "Asia/Kathmandu", "America/New_York"]),
    st.sampled_from(CHANGES),
    st.integers(-12 * 60, 12 * 60),
)
def test_the_next_change_is_the_first_minute_that_differs(
    spans: list[tuple[int, int]], zone: str, around: int, minutes: int
) -> None:
    def clock_of(minute: int) -> str:
        return f"{minute // 60:02}:{minute % 60:02}"

    hours = Hours(tuple(f"{clock_of(one)}-{clock_of(other)}" for one, other in spans), zone)
    now = around + minutes * MINUTE_MS + 1234
    wanted = next(
        (
            minute * MINUTE_MS
            for minute in range(now // MINUTE_MS + 1, now // MINUTE_MS + 25 * 60 + 2)
            if hours.is_open(minute * MINUTE_MS) is not hours.is_open(now)
        ),
        None,
    )
    assert wanted is None or hours.next_change(now) == wanted, datetime.fromtimestamp(now / 1000, UTC)


def test_of_hours_of_which_a_day_has_one_minute_that_minute_is_found() -> None:
    hours = Hours(("02:01-03:01",), BERLIN)
    opens = at("2026-03-29T03:00")
    assert hours.next_change(at("2026-03-29T00:30")) == opens
    assert hours.next_change(opens) == opens + MINUTE_MS


def test_a_day_without_the_only_hours_takes_one_more() -> None:
    lost = Hours(("02:00-03:00",), BERLIN)
    assert lost.elapsing(at("2026-03-28T04:00"))(60) == 45 * 3600 + 60  # of two days, one of which has 23 hours
    assert lost.next_change(at("2026-03-28T04:00")) == at("2026-03-30T02:00")
