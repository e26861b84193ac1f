"""New partitions are waited for without asking for all of them again and again."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from strait.control import executor
from strait.control.executor import until_usable
from strait.errors import ClusterUnavailable
from strait.kafka.admin import Outcomes
from strait.model import TopicPartition

ALL = [TopicPartition(f"t.{topic}", number) for topic in range(1000) for number in range(10)]


class Slow:
    """A cluster that makes so many partitions a second, in an order of its own; ``never``: these, it does not serve."""

    def __init__(self, per_second: float, never: Sequence[TopicPartition] = ()) -> None:
        self.now = 0.0
        self._per_second = per_second
        self._rank = {place: number for number, place in enumerate(reversed(ALL)) if place not in never}
        self.asked = 0
        self.away_until = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def partition_counts(self) -> dict[str, int]:
        if self.now < self.away_until:
            self.now += 1.0
            raise ClusterUnavailable("b", "away")
        return {place.topic: 10 for place in ALL}

    def offsets_each(self, places: Sequence[TopicPartition], where: str) -> Outcomes[TopicPartition, int]:
        self.asked += len(places)
        self.now += 1e-5 * len(places)
        made = self.now * self._per_second
        return Outcomes({one: 0 for one in places if self._rank.get(one, math.inf) < made}, {})


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(*given: Any) -> Any:
        slow = Slow(*given)
        monkeypatch.setattr(executor, "time", slow)
        return slow

    return make


def test_all_are_asked_a_few_times_however_long_the_brokers_take(cluster: Any) -> None:
    slow = cluster(100.0)
    assert not until_usable(slow, ALL)
    assert slow.now >= len(ALL) / 100.0
    assert slow.asked <= 20 * len(ALL)
    quick = cluster(1e9)
    assert not until_usable(quick, ALL)
    assert quick.asked == len(ALL)


def test_those_that_are_not_served_are_named_soon_after_the_others(cluster: Any) -> None:
    slow = cluster(1e9, ALL[5:8])
    assert until_usable(slow, ALL) == set(ALL[5:8])
    assert slow.now < 30.0


def test_a_cluster_that_is_away_for_a_moment_is_asked_again(cluster: Any) -> None:
    slow = cluster(1e9)
    slow.away_until = 5.0
    assert not until_usable(slow, ALL)
