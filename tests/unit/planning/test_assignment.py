"""Partitions go to slots evenly, by number or by measured load, always to the same ones, and stay where they are."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from strait.model import TopicPartition
from strait.planning.assignment.spread import ENOUGH, TOO_MUCH, WORTH_BYTES_PER_SECOND, assign, weights_of

partitions = st.sets(st.builds(TopicPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 30)), max_size=60)
slots = st.integers(1, 9)
measured = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 30)), st.floats(0, 1e9), max_size=90
)


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


def settled(wanted: set[TopicPartition], count: int, loads: dict[TopicPartition, float]) -> dict[TopicPartition, int]:
    return assign(wanted, assign(wanted, {}, count, 0, loads), count, count, loads)


def burden(assigned: dict[TopicPartition, int], count: int, loads: dict[TopicPartition, float]) -> list[int]:
    weights, sums = weights_of(assigned, loads), [0] * count
    for partition, slot in assigned.items():
        sums[slot] += weights[partition]
    return sums


@given(partitions, slots, slots, measured)
def test_by_load_too_every_partition_has_exactly_one_slot_whatever_there_was(
    wanted: set[TopicPartition], count: int, before: int, loads: dict[TopicPartition, float]
) -> None:
    assigned = assign(wanted, assign(wanted, {}, before, 0), count, before, loads)
    assert assigned.keys() == wanted
    assert set(assigned.values()) <= set(range(count))


@given(partitions, slots, measured, measured)
def test_a_second_look_at_the_same_loads_moves_nothing(
    wanted: set[TopicPartition], count: int, then: dict[TopicPartition, float], loads: dict[TopicPartition, float]
) -> None:
    once = assign(wanted, assign(wanted, {}, count, 0, then), count, count, loads)
    assert assign(wanted, once, count, count, loads) == once


@given(partitions, partitions, slots, measured)
def test_one_that_was_not_measured_yet_moves_no_other(
    old: set[TopicPartition], new: set[TopicPartition], count: int, loads: dict[TopicPartition, float]
) -> None:
    known = {partition: load for partition, load in loads.items() if partition in old}
    before = settled(old, count, known)
    after = assign(old | new, before, count, count, known)
    assert {partition: after[partition] for partition in old} == before
    assert assign(old | new, after, count, count, known) == after


@given(partitions, slots, slots, measured)
def test_losing_slots_moves_only_what_they_had_whatever_the_loads(
    wanted: set[TopicPartition], fewer: int, lost: int, loads: dict[TopicPartition, float]
) -> None:
    before = settled(wanted, fewer + lost, loads)
    after = assign(wanted, before, fewer, fewer + lost, loads)
    assert all(after[partition] == slot for partition, slot in before.items() if slot < fewer)


@given(st.integers(2, 9), st.integers(1, 9), st.integers(0, 40), st.integers(0, 8))
def test_hot_partitions_share_no_slot_where_there_are_enough(count: int, hot: int, cold: int, together: int) -> None:
    hottest = [TopicPartition("hot", number) for number in range(min(hot, count))]
    others = [TopicPartition("cold", number) for number in range(cold)]
    loads = dict.fromkeys(hottest, 50e6) | dict.fromkeys(others, 1e5)
    new = assign([*hottest, *others], {}, count, 0, loads)
    assert len({new[partition] for partition in hottest}) == len(hottest)
    crowded = dict.fromkeys([*hottest, *others], min(together, count - 1))
    spread = assign([*hottest, *others], crowded, count, count, loads)
    assert len({spread[partition] for partition in hottest}) == len(hottest)


@given(st.integers(2, 9), st.integers(0, 2**32))
def test_noise_moves_nothing_once_slots_are_even(count: int, seed: int) -> None:
    dice = random.Random(seed)
    loads = {TopicPartition("t", number): dice.uniform(1e6, 4e6) for number in range(count * 30)}
    before = settled(set(loads), count, loads)
    for _ in range(5):
        noisy = {partition: load * dice.uniform(0.92, 1.08) for partition, load in loads.items()}
        assert assign(loads, before, count, count, noisy) == before


@given(st.integers(2, 9), st.integers(0, 2**32))
def test_a_slot_with_too_much_is_relieved_by_the_fewest_moves_that_do_it(count: int, seed: int) -> None:
    dice = random.Random(seed)
    loads = {TopicPartition("t", number): dice.uniform(1e6, 4e6) for number in range(count * 30)}
    before = settled(set(loads), count, loads)
    loads |= {partition: load * 3 for partition, load in loads.items() if before[partition] == 0}
    after = assign(loads, before, count, count, loads)
    sums = burden(after, count, loads)
    mean = sum(sums) / count
    assert max(sums) <= TOO_MUCH * mean
    gone = sorted(weights_of(loads, loads)[partition] for partition, slot in before.items() if after[partition] != slot)
    had = burden(before, count, loads)[0]
    assert had - sum(gone[1:]) > ENOUGH * mean, "one move fewer, the smallest, would not have done"


def test_loads_too_small_to_slow_anything_down_move_nothing() -> None:
    loads = {TopicPartition("t", number): 10_000.0 for number in range(40)}
    before = dict.fromkeys(loads, 0)
    assert sum(loads.values()) < WORTH_BYTES_PER_SECOND
    assert assign(loads, before, 2, 2, loads) == before


def test_added_slots_take_what_they_can_beside_a_partition_too_hot_to_move() -> None:
    hot, others = TopicPartition("hot", 0), [TopicPartition("cold", number) for number in range(9)]
    loads = {hot: 90e6} | dict.fromkeys(others, 5e6)
    before = {hot: 0} | dict.fromkeys(others, 1)
    after = assign(loads, before, 3, 2, loads)
    assert after[hot] == 0
    assert Counter(after[partition] for partition in others) in ({1: 5, 2: 4}, {1: 4, 2: 5})
