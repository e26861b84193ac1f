"""How much of a link's past is kept."""

from strait.planning.history.sample import Sample
from strait_airflow.page.routes.history import _before, _newest
from strait_airflow.page.watches.history import DAY_MS, HOUR_MS, MINUTE_MS, STEP_MS, HistorySeen, _kept

NOW_MS = 1_000 * DAY_MS


def kept(*at_ms: int) -> list[int]:
    return [sample.at_ms for sample in _kept({one: Sample(one) for one in at_ms}, NOW_MS)]


def test_minutes_of_the_last_hour_and_steps_of_the_last_day_are_kept_in_order():
    minutes = [NOW_MS - number * MINUTE_MS for number in range(180)]
    assert kept(*minutes) == sorted(one for one in minutes if one >= NOW_MS - HOUR_MS or one % STEP_MS == 0)
    assert kept(NOW_MS - DAY_MS - STEP_MS, NOW_MS - DAY_MS) == [NOW_MS - DAY_MS]


def test_hours_are_counted_from_the_newest_sample():
    seen = HistorySeen(tuple(Sample(NOW_MS - number * HOUR_MS) for number in reversed(range(10))))
    assert [sample.at_ms for sample in _newest(seen, 2)] == [NOW_MS - 2 * HOUR_MS, NOW_MS - HOUR_MS, NOW_MS]
    assert _newest(HistorySeen(), 2) == ()


def test_the_days_before_end_where_the_minutes_begin():
    past, newer = ([Sample(at_ms * HOUR_MS) for at_ms in range(*span)] for span in ((0, 700), (690, 720)))
    assert [sample.at_ms // HOUR_MS for sample in _before(past, newer)] == list(range(690))
    assert _before(past, []) == past
