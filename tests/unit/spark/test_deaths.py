"""A slot may fail any number of times in months, but not often in minutes."""

from collections import deque
from types import SimpleNamespace
from typing import Any, cast

import pytest

from strait.spark.deaths import MOST_DEATHS, WINDOW_SECONDS, DeathCount, SlotDeaths, SlotKeepsDying


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


class Spark:
    """A session with one stage, of whose tasks Spark lists the newest five."""

    def __init__(self) -> None:
        self.failed = 0
        self._tasks: deque[Any] = deque(maxlen=5)
        stage = SimpleNamespace(currentAttemptId=0)
        tracker = SimpleNamespace(getActiveStageIds=lambda: [3], getStageInfo=lambda _: self._stage(stage))
        store = SimpleNamespace(taskList=lambda *_: self)
        java = SimpleNamespace(sc=lambda: SimpleNamespace(statusStore=lambda: store))
        self.sparkContext = SimpleNamespace(statusTracker=lambda: tracker, _jsc=java)

    def _stage(self, stage: SimpleNamespace) -> SimpleNamespace:
        stage.numFailedTasks = self.failed
        return stage

    def size(self) -> int:
        return len(self._tasks)

    def apply(self, number: int) -> Any:
        return self._tasks[number]

    def fail(self) -> None:
        number, message = self.failed, SimpleNamespace(isDefined=lambda: True, get=lambda: "killed")
        task = {
            "taskId": lambda: number,
            "status": lambda: "FAILED",
            "index": lambda: 0,
            "errorMessage": lambda: message,
        }
        self._tasks.append(SimpleNamespace(**task))
        self.failed += 1


def test_only_what_spark_lists_is_remembered_and_each_failure_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=0.0)
    monkeypatch.setattr("strait.spark.deaths.time", clock)
    spark = Spark()
    deaths = SlotDeaths(cast(Any, spark))
    for _ in range(100):
        spark.fail()
        clock.now += WINDOW_SECONDS / MOST_DEATHS + 1
        deaths.look()
    assert sum(map(len, deaths._seen.values())) == 5
    spark.fail()
    clock.now += 2.0
    with pytest.raises(SlotKeepsDying):
        deaths.look()
