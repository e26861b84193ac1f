"""Two reports of one slot some seconds apart tell its pace, however long the reader has been reading."""

from strait.state.codec import encode
from strait.state.slot_reports import PACE_MS
from strait.state.view import Place, StateView
from support.model.reports import plain_report

SLOT = ("default", 0)


def hear(view: StateView, at_ms: int, application: str = "1", part: int = 0, parts: int = 1) -> None:
    report = plain_report(at_ms=at_ms, application=application, part=part, parts=parts)
    view.apply("reports", *encode(report), Place("strait.l.reports", 0, at_ms))


def distance_ms(view: StateView) -> int:
    (earlier,), (now,) = view.reports.earlier()[SLOT], view.reports[SLOT]
    return now.at_ms - earlier.at_ms


def test_the_distance_grows_to_what_is_needed_and_stays_within_twice_that() -> None:
    view = StateView("l")
    for second in range(100):
        hear(view, second * 1000)
        assert min(second * 1000, PACE_MS) <= distance_ms(view) <= 2 * PACE_MS + 2000


def test_what_is_not_reported_any_more_is_forgotten() -> None:
    view = StateView("l")
    hear(view, 0, application="old")
    hear(view, 120_000, application="new", parts=2)
    hear(view, 120_000, application="new", part=1, parts=2)
    hear(view, 121_000, application="new", parts=1)
    assert [(item.application, item.part) for item in view.reports.earlier()[SLOT]] == [("new", 0)]
