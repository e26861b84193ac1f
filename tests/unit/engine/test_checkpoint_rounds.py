"""Checkpoints are spread over the minute, and each partition has its turn in it."""

from hypothesis import given
from hypothesis import strategies as st

from strait.engine.checkpointer import MOST_AT_ONCE, Rounds
from strait.engine.partition.partition import Partition
from support.model.partitions import plain_partition


@given(st.integers(0, 60), st.lists(st.floats(0.001, 30.0), min_size=1, max_size=200))
def test_each_partition_has_one_turn_in_a_round_whenever_it_is_asked(count: int, pauses: list[float]) -> None:
    partitions = [plain_partition() for _ in range(count)]
    rounds, now, seen = Rounds(60.0, 0.0), 0.0, list[Partition]()
    for pause in pauses:
        now += pause
        seen += rounds.due(now, lambda: partitions)
    whole, rest = divmod(len(seen), count) if count else (0, 0)
    assert seen == partitions * whole + partitions[:rest]
    assert whole <= now / 60.0
    longest = 60.0 + 2 * max(pauses)
    assert not count or whole >= int(now / longest)


def test_of_very_many_only_some_are_due_at_once_and_none_is_left_out() -> None:
    partitions = [plain_partition() for _ in range(1000)]
    rounds, seen = Rounds(60.0, 0.0), list[Partition]()
    for _ in range(10):
        due = rounds.due(75.0, lambda: partitions)
        assert len(due) <= MOST_AT_ONCE
        seen += due
    assert seen == partitions
    assert rounds.due(75.0, lambda: partitions) == []


def test_what_the_plan_has_taken_away_has_no_turn() -> None:
    kept, taken = plain_partition(), plain_partition()
    rounds = Rounds(60.0, 0.0)
    assert rounds.due(0.0, lambda: [kept, taken]) == []
    taken.retire()
    assert rounds.due(60.0, lambda: [kept, taken]) == [kept]
