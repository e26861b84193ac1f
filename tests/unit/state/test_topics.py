"""State topics that exist, on brokers that have not heard of them yet. Real brokers show theirs too soon to tell."""

from collections.abc import Callable, Collection, Iterable
from typing import cast

import pytest

from strait.errors import ClusterUnavailable, StateError
from strait.kafka.admin import Admin, NewTopic
from strait.model import ClusterFacts, TopicFacts, TopicPartition
from strait.state import topics
from strait.state.topics import ensure_state_topics


class LateBrokers:
    """They have every topic, deleted instead of compacted, with a record, and show none before so many looks."""

    cluster = "b"

    def __init__(self, unseen_looks: int) -> None:
        self._unseen_looks = unseen_looks
        self._names: list[str] = []

    def create(self, wanted: Iterable[NewTopic]) -> list[str]:
        self._names = [topic.topic for topic in wanted]
        return []

    def observe(self, wanted: Callable[[str], bool], _: Collection[str]) -> ClusterFacts:
        self._unseen_looks -= 1
        shown = self._names if self._unseen_looks < 0 else []
        found = {
            name: TopicFacts(name, "id", 1, configs={"cleanup.policy": "delete"}) for name in shown if wanted(name)
        }
        return ClusterFacts("b", "cluster-id", found)

    def offsets(self, partitions: Iterable[TopicPartition], _: str) -> dict[TopicPartition, int]:
        return dict.fromkeys(partitions, 1)


def test_a_topic_that_is_shown_late_is_checked_all_the_same() -> None:
    with pytest.raises(StateError, match=r"has cleanup.policy=delete, expected compact"):
        ensure_state_topics(cast(Admin, LateBrokers(unseen_looks=2)), "link", None)


def test_a_topic_that_is_not_shown_is_not_taken_for_a_good_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "_SHOWN_SECONDS", 0.2)
    with pytest.raises(
        ClusterUnavailable,
        match=r"checking state topic .*: it exists, but was not shown .*see whether all brokers and the controller run",
    ):
        ensure_state_topics(cast(Admin, LateBrokers(unseen_looks=1_000)), "link", None)
