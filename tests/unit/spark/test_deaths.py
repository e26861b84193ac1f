"""A slot may fail any number of times in months, but not often in minutes."""

import pytest

from strait.spark.deaths import MOST_DEATHS, WINDOW_SECONDS, DeathCount, SlotKeepsDying


def test_failures_spread_out_are_forgotten() -> None:
    count = DeathCount()
    for number in range(100):
        count.died(0, number * WINDOW_SECONDS / MOST_DEATHS + number, "killed")


def test_more_than_four_in_ten_minutes_end_it_with_the_last_cause() -> None:
    count = DeathCount()
    for number in range(MOST_DEATHS):
        count.died(0, float(number), "killed")
    count.died(1, 4.0, "another slot's do not count")
    with pytest.raises(SlotKeepsDying, match="slot 0 failed 5 times within 10 minutes, the last time: out of memory"):
        count.died(0, 5.0, "out of memory")
