"""Partitions go to slots evenly, always to the same ones, and stay where they are."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from strait.model import TopicPartition
from strait.planning.assignment import assign

partitions = st.sets(st.builds(TopicPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 30)), max_size=60)
slots = st.integers(1, 9)


def loads(assigned: dict[TopicPartition, int], count: int) -> list[int]:
    counted = Counter(assigned.values())
    return [counted[slot] for slot in range(count)]


@given(partitions, slots)
def test_every_partition_has_exactly_one_slot_and_slots_are_even(wanted: set[TopicPartition], count: int) -> None:
    assigned = assign(wanted, {}, count, 0)
    assert assigned.keys() == wanted
    assert set(assigned.values()) <= set(range(count))
    assert max(loads(assigned, count)) - min(loads(assigned, count)) <= 1


@given(partitions, slots, st.randoms(use_true_random=False))
def test_the_order_of_partitions_does_not_matter(wanted: set[TopicPartition], count: int, random: object) -> None:
    shuffled = sorted(wanted)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert assign(shuffled, {}, count, 0) == assign(sorted(wanted), {}, count, 0)


@given(partitions, partitions, slots)
def test_nothing_moves_when_nothing_changed(first: set[TopicPartition], second: set[TopicPartition], n: int) -> None:
    before = assign(second, assign(first, {}, n, 0), n, n)
    assert assign(second, before, n, n) == before


@given(partitions, partitions, slots)
def test_new_partitions_move_none_of_the_others(old: set[TopicPartition], new: set[TopicPartition], count: int) -> None:
    before = assign(old, {}, count, 0)
    after = assign(old | new, before, count, count)
    assert {partition: after[partition] for partition in old} == before


@given(partitions, partitions, slots)
def test_removed_partitions_move_none_of_the_others(
    kept: set[TopicPartition], gone: set[TopicPartition], count: int
) -> None:
    before = assign(kept | gone, {}, count, 0)
    after = assign(kept, before, count, count)
    assert after == {partition: before[partition] for partition in kept}


@given(partitions, slots, slots)
def test_losing_slots_moves_only_what_they_had(wanted: set[TopicPartition], fewer: int, lost: int) -> None:
    before = assign(wanted, {}, fewer + lost, 0)
    after = assign(wanted, before, fewer, fewer + lost)
    assert after.keys() == wanted
    assert all(after[partition] == slot for partition, slot in before.items() if slot < fewer)
    assert max(loads(after, fewer)) - min(loads(after, fewer)) <= 1


@given(partitions, slots, slots)
def test_added_slots_get_an_even_share_and_no_more_moves_than_that_takes(
    wanted: set[TopicPartition], count: int, added: int
) -> None:
    before = assign(wanted, {}, count, 0)
    after = assign(wanted, before, count + added, count)
    shares = loads(after, count + added)
    assert max(shares) - min(shares) <= 1
    moved = sum(after[partition] != slot for partition, slot in before.items())
    assert moved == sum(shares[count:])
