"""Which logs of compacted destination topics a plan reads, to find what compaction deleted."""

from types import SimpleNamespace
from typing import Any

import pytest

from strait.control import kept_less
from strait.control.kept_less import losses_by_settings
from strait.errors import ClusterUnavailable, LoginRejected, NotAuthorized, OtherCluster, StraitError
from strait.model import TopicFacts, TopicPartition
from strait.planning.topics.pairs import Pair
from strait.state.schema import TopicPolicy
from strait.wire.records import Record
from support.audited import batch_at
from support.model.reports import plain_run

PARTITIONS = 250
UNANSWERED = ClusterUnavailable("b", "no leader")


class Site:
    """A topic whose copies lack their second record, and whose ``broken`` partitions cannot be read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **broken: StraitError) -> None:
        self.read: list[int] = []
        self._broken = {int(number.removeprefix("p")): error for number, error in broken.items()}
        monkeypatch.setattr(kept_less, "StateReader", lambda *_, **__: self)
        monkeypatch.setattr(kept_less, "PartitionLogs", lambda *_: self)
        self.losses: list[Any] = []
        self.at: Any = {}, "b"

    def __enter__(self) -> "Site":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def catch_up(self) -> None:
        pass

    def offsets_each(self, places: Any, _: str) -> Any:
        return SimpleNamespace(results=dict.fromkeys(places, 0))

    def read_raw(self, place: TopicPartition, *_: Any, **__: Any) -> Any:
        self.read.append(place.partition)
        if place.partition in self._broken:
            raise self._broken[place.partition]
        batches = (batch_at(offset, [Record(0, 1, b"key", b"value", ())]) for offset in (0, 2))
        return SimpleNamespace(records=memoryview(b"".join(bytes(batch.view) for batch in batches)))

    def plan(self, now_ms: int, partitions: int = PARTITIONS) -> list[int]:
        """Plan once, as each task of Airflow does; return the partitions of which records are lost."""
        here, there = {"cleanup.policy": "delete"}, {"cleanup.policy": "compact"}
        pair = Pair(TopicFacts("t", "s", partitions, configs=here), TopicFacts("t", "d", partitions, configs=there))
        runs = {
            ("t", number): (plain_run(partition=number, sequence_end=10, checkpoint_at_ms=1),)
            for number in range(partitions)
        }
        clusters: Any = SimpleNamespace(source=self, destination=self)
        found = losses_by_settings(clusters, "l", [pair], runs, {"t": TopicPolicy()}, now_ms, {})
        return [loss.partition for loss in found]


@pytest.mark.parametrize("every_ms", [60_000, 150_000, 86_400_000])
def test_plans_that_remember_nothing_read_every_partition_in_the_end(
    monkeypatch: pytest.MonkeyPatch, every_ms: int
) -> None:
    site, found = Site(monkeypatch), set()
    for number in range(40):
        lost = site.plan(1_700_000_000_000 + number * every_ms)
        assert len(lost) == 100
        found.update(lost)
    assert found == set(range(PARTITIONS))


@pytest.mark.parametrize("error", [UNANSWERED, NotAuthorized("b", "denied")])
def test_a_partition_that_cannot_be_read_hides_no_other(monkeypatch: pytest.MonkeyPatch, error: StraitError) -> None:
    site = Site(monkeypatch, p1=error)
    assert site.plan(0, partitions=4) == [0, 2, 3]


@pytest.mark.parametrize(
    ("error", "read"), [(UNANSWERED, 3), (LoginRejected("b", "denied"), 2), (OtherCluster("b", "another"), 2)]
)
def test_a_cluster_that_does_not_answer_is_not_asked_about_every_partition(
    monkeypatch: pytest.MonkeyPatch, error: StraitError, read: int
) -> None:
    site = Site(monkeypatch, **{f"p{number}": error for number in range(1, 50)})
    assert site.plan(0, partitions=50) == [0]
    assert len(site.read) == read
