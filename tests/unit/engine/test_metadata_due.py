"""Which topics' metadata is asked for, and when. The time is the test's."""

import heapq
from collections.abc import Iterator

import pytest

from strait.net.event_loop import Loop
from strait.net.metadata_due import LOOK_AGAIN_SECONDS, TOPICS_AT_ONCE, MetadataDue


class Asked:
    """What was asked for, and when: at once answered."""

    def __init__(self, *interest: str) -> None:
        self.loop = Loop()
        self.loop.now = 0.0
        self.due = MetadataDue(self.loop, set(interest), self._ask)
        self.asked: list[tuple[float, dict[str, bool]]] = []

    def _ask(self) -> None:
        while (taken := self.due.take()) is not None:
            self.asked.append((round(self.loop.now, 3), taken))

    def pass_seconds(self, seconds: float) -> list[tuple[float, dict[str, bool]]]:
        """What is asked for meanwhile."""
        before, until = len(self.asked), self.loop.now + seconds
        while self.loop._timers and self.loop._timers[0][0] <= until:
            self.loop.now = self.loop._timers[0][0]
            timer = heapq.heappop(self.loop._timers)[2]
            assert timer.action is not None
            timer.action()
        self.loop.now = until
        return self.asked[before:]


@pytest.fixture
def asked() -> Iterator[Asked]:
    it = Asked("a", "b", "c")
    yield it
    it.loop.close()


def test_a_topic_in_trouble_is_asked_for_alone_and_later_each_time(asked: Asked) -> None:
    waits = []
    for _ in range(8):
        asked.due.look_again("b")
        asked.due.look_again("b")  # another of its partitions
        began = asked.loop.now
        ((at, topics),) = asked.pass_seconds(31.0)
        assert topics == {"b": True}
        waits.append(round(at - began - 0.1, 3))
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, LOOK_AGAIN_SECONDS[1], LOOK_AGAIN_SECONDS[1]]
    asked.due.changed("b")
    asked.due.look_again("b")
    assert asked.pass_seconds(0.7), "it is another trouble"


def test_a_partition_without_a_leader_is_looked_at_every_two_seconds(asked: Asked) -> None:
    waits = []
    for _ in range(6):
        asked.due.look_again("b", leaderless=True)
        began = asked.loop.now
        ((at, _),) = asked.pass_seconds(3.0)
        waits.append(round(at - began - 0.1, 3))
    assert waits == [0.5, 1.0, 2.0, 2.0, 2.0, 2.0]


def test_a_topic_that_is_left_is_not_asked_for_any_more(asked: Asked) -> None:
    asked.due.look_again("d")
    assert not asked.pass_seconds(60.0)


def test_many_calls_make_one_request(asked: Asked) -> None:
    asked.due.topics(["b"])
    asked.due.topics(["c", "b"])
    asked.due.all(3)
    asked.due.all(3)
    (first, *rest) = asked.pass_seconds(1.0)
    assert (first[1], rest[0][1], len(rest)) == ({"b": True, "c": True}, {"a": False, "b": False, "c": False}, 1)


def test_refreshes_of_all_are_far_apart_where_there_are_many_partitions(asked: Asked) -> None:
    for _ in range(100):
        asked.due.all(10_000)
        asked.pass_seconds(0.1)
    assert 5 <= len(asked.asked) <= 9


def test_many_topics_are_asked_for_in_pieces_and_again_if_no_answer_came() -> None:
    names = [f"t{number:04}" for number in range(2 * TOPICS_AT_ONCE + 1)]
    asked = Asked(*names)
    asked.due.all(1)
    pieces = [topics for _, topics in asked.pass_seconds(1.0)]
    assert [len(piece) for piece in pieces] == [TOPICS_AT_ONCE, TOPICS_AT_ONCE, 1]
    assert [name for piece in pieces for name in piece] == names
    asked.due.put_back(pieces[1])
    assert asked.due.take() == pieces[1]
    assert asked.due.take() is None
    asked.loop.close()
