"""How soon retention reaches what is not copied: distance over pace, and silence where nothing can be foreseen."""

from typing import Any

import pytest

from strait.planning.history.overrun import lags, observations, seconds_to_loss
from strait.state.report_records import PartitionReport, Report
from strait.text import duration
from support.model.reports import plain_report

HOUR_MS = 3_600_000


def said(at_ms: int, log_start: int, position: int, lag_records: int = 9, slot: int = 0) -> Report:
    partition = PartitionReport(
        topic="orders",
        partition=0,
        state="copying",
        position=position,
        end=position + lag_records,
        lag_records=lag_records,
        lag_seconds=1.0,
        records=0,
        bytes=0,
        log_start=log_start,
    )
    return plain_report(at_ms=at_ms, slot=slot, partitions=(partition,))


def foreseen(*earlier: Report, now: Report) -> Any:
    before = observations("default", {("default", report.slot): (report,) for report in earlier})
    return seconds_to_loss(before, observations("default", {("default", now.slot): (now,)}))


def test_it_is_the_distance_to_the_log_start_over_the_pace_of_deletion() -> None:
    found = foreseen(said(0, 0, 500), now=said(HOUR_MS, 3600, 10_800))
    assert found == {("orders", 0): 7200.0}, "7200 records ahead of a deletion of 1 record a second"


def test_what_deletion_has_reached_is_lost_now() -> None:
    assert foreseen(said(0, 0, 500), now=said(HOUR_MS, 600, 500)) == {("orders", 0): 0.0}


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (said(0, 0, 500), said(HOUR_MS, 0, 500)),
        (said(0, 0, 500), said(HOUR_MS, 400, 500, lag_records=0)),
        (said(0, -1, 500), said(HOUR_MS, 400, 500)),
        (said(0, 0, 500), said(HOUR_MS, -1, 500)),
        (said(0, 0, 500), said(HOUR_MS, 400, -1)),
        (said(0, 500, 500), said(HOUR_MS, 0, 500)),
        (said(HOUR_MS, 0, 500), said(HOUR_MS, 400, 500)),
    ],
    ids=["no deletion", "caught up", "unknown then", "unknown now", "no position", "another topic", "same time"],
)
def test_nothing_is_foreseen_without_a_pace_or_something_to_lose(before: Report, now: Report) -> None:
    assert foreseen(before, now=now) == {}


def test_without_earlier_reports_nothing_is_foreseen() -> None:
    assert foreseen(now=said(HOUR_MS, 400, 500)) == {}


def test_the_newest_word_counts_whichever_slot_said_it() -> None:
    reports = {
        ("default", 0): (said(5, 1, 1),),
        ("default", 1): (said(9, 2, 2, slot=1),),
        ("other", 0): (said(99, 3, 3),),
    }
    assert observations("default", reports)["orders", 0].log_start == 2  # type: ignore[index]


def test_only_a_group_that_lags_has_something_to_lose() -> None:
    reports = {("default", 0): (said(5, 1, 1, lag_records=0),), ("other", 0): (said(5, 1, 1),)}
    assert not lags("default", reports)
    assert lags("other", reports)


LONG = [
    (3570, "1 h"),
    (7100, "1 h 58 min"),
    (7200, "2 h"),
    (86_390, "1 d"),
    (263_000, "3 d 1 h"),
    (10**9, "11574 d 1 h"),
]


@pytest.mark.parametrize(("seconds", "text"), [(0, "0 s"), (119, "119 s"), (120, "2 min"), *LONG])
def test_it_is_told_in_a_fitting_unit(seconds: float, text: str) -> None:
    assert duration(seconds) == text
