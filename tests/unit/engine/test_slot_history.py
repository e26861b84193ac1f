"""Minutes and hours of a slot add up to what it copied, however often it is started."""

from strait.engine.slot_history import SlotHistory
from strait.state.codec import decode, encode
from strait.state.report_changes import KEPT, HistoryPoint

HOUR_MS = 3_600_000


def observed(history: SlotHistory, from_ms: int, until_ms: int) -> list[HistoryPoint]:
    """Ten records a second."""
    points = []
    for at_ms in range(from_ms, until_ms, 1_000):
        totals = (at_ms - from_ms) // 100, 0
        points += history.observe(
            at_ms, totals, lag_records=at_ms % 7, lag_seconds=None, latency_ms_p50=1.0, latency_ms_p99=at_ms / HOUR_MS
        )
    return points + history.close(until_ms, ((until_ms - from_ms) // 100, 0))


def test_each_minute_and_hour_is_told_once_and_what_was_not_known_stays_unknown() -> None:
    points = observed(SlotHistory("default", 0, 0), 0, 2 * HOUR_MS)
    minutes = [point for point in points if point.span == "minute"]
    hours = [point for point in points if point.span == "hour"]
    assert [point.at_ms for point in minutes] == list(range(0, 2 * HOUR_MS, 60_000))
    assert [(point.records, point.seconds) for point in hours] == [(36_000, 3_600.0)] * 2
    assert {(point.lag_records, point.lag_seconds, point.latency_ms_p50) for point in minutes} == {(6, None, 1.0)}


def test_parts_of_an_hour_stand_beside_each_other_and_a_later_day_takes_their_place() -> None:
    first = observed(SlotHistory("default", 0, 0), 0, 600_000)
    second = observed(SlotHistory("default", 0, 700_000), 700_000, HOUR_MS)
    hours = [point for point in first + second if point.span == "hour"]
    assert sum(point.records for point in hours) == 6_000 + 29_000
    assert len({encode(point)[0] for point in first + second}) == len(first + second)
    later = first[0].model_copy(update={"at_ms": KEPT["minute"] * 60_000})
    assert encode(later)[0] == encode(first[0])[0]
    assert decode(HistoryPoint, *encode(later)) == later
