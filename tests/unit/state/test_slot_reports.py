"""Reports that hold changes only are put together to what whole ones would have said."""

import json
from typing import Any

from strait.state.codec import encode
from strait.state.report_changes import REPEAT_SECONDS, FailureReport, ReportChanges, TrafficReport
from strait.state.report_records import PartitionReport, ZoneTraffic
from strait.state.slot_reports import REPORT_MEMORY_MS, lag_seconds
from strait.state.view import Place, StateView
from support.model.reports import plain_report

SLOT = ("default", 0)


def row(number: int, position: int, at_ms: int, **fields: Any) -> PartitionReport:
    figures = {"end": position, "lag_records": 0, "lag_seconds": 0.0, "records": 0, "bytes": 0}
    return PartitionReport(
        topic="t", partition=number, state="copying", position=position, at_ms=at_ms, **figures | fields
    )


def changes(at_ms: int, *rows: PartitionReport, **fields: Any) -> ReportChanges:
    base = {"group": "default", "slot": 0, "application": "1", "started_at_ms": 0, "at_ms": at_ms}
    return ReportChanges(**base | {"partitions": rows} | fields)


def hear(view: StateView, *said: Any) -> None:
    for one in said:
        assert view.apply("reports", *encode(one), Place("strait.l.reports", 0, 0))
    assert view.trouble("reports") is None


def whole(at_ms: int, **fields: Any) -> Any:
    return plain_report(at_ms=at_ms, started_at_ms=0, application="1", part=0, parts=1, partitions=(), **fields)


def positions(view: StateView) -> dict[int, int]:
    (report,) = view.reports[SLOT]
    return {item.partition: item.position for item in report.partitions}


def test_the_newest_word_on_each_partition_counts_and_the_rest_is_unknown() -> None:
    view = StateView("l")
    hear(view, changes(0, row(0, 5, 0)))
    assert view.reports[SLOT] == ()  # nothing is known of the slot itself
    hear(view, whole(1_000), changes(2_000, row(1, 7, 2_000), row(0, 6, 2_000), records_per_second=8.0))
    (report,) = view.reports[SLOT]
    assert positions(view) == {0: 6, 1: 7}
    assert (report.at_ms, report.records_per_second) == (2_000, 8.0)


def test_what_left_or_was_not_repeated_is_not_the_slots_any_more() -> None:
    view = StateView("l")
    hear(view, whole(0), changes(0, row(0, 5, 0), row(1, 5, 0), row(2, 5, 0)), changes(1_000, left=(("t", 0),)))
    assert positions(view) == {1: 5, 2: 5}
    late_ms = 4 * REPEAT_SECONDS * 1000
    hear(view, whole(late_ms), changes(late_ms, row(2, 5, late_ms)))
    assert positions(view) == {2: 5}


def test_a_slot_that_started_anew_and_one_of_an_older_version_say_what_they_say() -> None:
    view = StateView("l")
    hear(view, whole(0), changes(0, row(0, 5, 0)))
    hear(view, changes(9_000, row(1, 1, 9_000), started_at_ms=8_000))
    assert positions(view) == {1: 1}
    old = row(3, 4, -1)
    hear(view, plain_report(at_ms=9_000, application="0", part=0, parts=1, partitions=(old,)))
    assert [report.application for report in view.reports[SLOT]] == ["0", "1"]
    assert view.reports[SLOT][0].partitions == (old,)
    hear(view, changes(9_001 + REPORT_MEMORY_MS, started_at_ms=8_000))
    assert [report.application for report in view.reports[SLOT]] == ["1"]


def test_a_partition_that_stands_still_lags_longer_with_each_second() -> None:
    view = StateView("l")
    hear(view, whole(0), changes(0, row(0, 5, 0, lag_records=3, lag_seconds=2.0), row(1, 5, 0)), changes(30_000))
    (report,) = view.reports[SLOT]
    assert [lag_seconds(item, report) for item in report.partitions] == [32.0, 0.0]


def test_changes_hold_no_defaults_and_older_versions_take_them_for_no_report_of_theirs() -> None:
    key, value = encode(changes(1, row(0, 5, 1)))
    assert json.loads(value)["v"] == 1
    assert "reason" not in json.loads(value)["partitions"][0]
    own = encode(whole(1))[0]
    assert key.startswith(own.removesuffix(b"0}"))  # a standby, of any version, hears it
    assert key != own


def test_a_slots_traffic_is_part_of_its_report_until_it_starts_anew() -> None:
    view = StateView("l")
    zones = (ZoneTraffic(cluster="source", from_zone="south", to_zone="", bytes=7),)
    traffic = TrafficReport(group="default", slot=0, application="1", at_ms=1, started_at_ms=0, traffic=zones)
    hear(view, traffic, whole(1_000), changes(1_000, row(0, 5, 0)))
    (report,) = view.reports[SLOT]
    assert (report.traffic, positions(view)) == (zones, {0: 5})
    hear(view, changes(2_000, row(0, 6, 2_000)))
    assert view.reports[SLOT][0].traffic == zones
    assert b"south" not in encode(report)[1], "it is written once"
    hear(view, whole(9_000).model_copy(update={"started_at_ms": 8_000}))
    assert view.reports[SLOT][0].traffic == ()


def failure(at_ms: int, application: str = "1") -> FailureReport:
    return FailureReport(
        group="default",
        slot=0,
        application=application,
        at_ms=at_ms,
        failure="ValueError: poisoned",
        restart_seconds=1.0,
    )


def test_a_slots_failure_holds_until_it_reports_again() -> None:
    view = StateView("l")
    hear(view, whole(0), changes(0, row(0, 5, 0)), failure(500))
    assert view.reports.failures() == {SLOT: failure(500)}
    assert positions(view) == {0: 5}, "what it has reported before is known still"
    hear(view, changes(1_500, row(0, 6, 1_500)))
    assert view.reports.failures() == {}


def test_a_slot_that_fails_before_its_first_report_has_failed_and_one_that_another_application_runs_has_not() -> None:
    view = StateView("l")
    hear(view, failure(500))
    assert view.reports.failures() == {SLOT: failure(500)}
    assert view.reports[SLOT] == ()
    hear(view, failure(2_500, application="2"), whole(3_000))
    assert view.reports.failures() == {}
