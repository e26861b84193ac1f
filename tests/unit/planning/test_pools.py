"""Slots of a pool's links go to its tasks evenly, stay where they are, and give way to a heavy neighbor."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from strait.config.app_spec import AppSpec, Seat
from strait.config.pools import Pool
from strait.planning.assignment.pools import place, pool_spec, seats_of, tasks_for

MB = 1_000_000
seats = st.sets(
    st.builds(
        Seat, st.sampled_from(["a-to-b", "c-to-b", "d-to-b"]), st.sampled_from(["default", "x"]), st.integers(0, 9)
    ),
    max_size=40,
)
tasks = st.integers(1, 6)
loads = st.dictionaries(
    st.builds(Seat, st.sampled_from(["a-to-b", "c-to-b"]), st.just("default"), st.integers(0, 9)), st.floats(0, 1e8)
)


def member(link: str, slots: int = 1, group: str = "default", **changed: Any) -> AppSpec:
    return AppSpec(
        link=link, group=group, source_name="a", source={"bootstrap.servers": "a:1"}, destination_name="b",
        destination={"bootstrap.servers": "b:1"}, slots=slots, slot_memory_bytes=1 << 27, ledger_seconds=3600,
        ledger_dir="/ledger", checkpoint_dir="/own",
    ).model_copy(update=changed)  # fmt: skip


@given(seats, tasks)
def test_every_slot_has_one_task_and_tasks_are_even(wanted: set[Seat], count: int) -> None:
    placed = place(wanted, {}, count, 0, {})
    assert placed.keys() == wanted
    assert set(placed.values()) <= set(range(count))
    hosted = [list(placed.values()).count(task) for task in range(count)]
    assert max(hosted) - min(hosted) <= 1


@given(seats, seats, tasks)
def test_links_come_and_go_without_moving_others(old: set[Seat], new: set[Seat], count: int) -> None:
    before = place(old, {}, count, 0, {})
    after = place(old | new, before, count, count, {})
    assert {seat: after[seat] for seat in old} == before
    left = place(new, after, count, count, {})
    assert left == {seat: after[seat] for seat in new}


@given(seats, tasks, loads)
def test_measured_loads_move_slots_once_at_most(wanted: set[Seat], count: int, measured: dict[Seat, float]) -> None:
    before = place(wanted, {}, count, 0, {})
    balanced = place(wanted, before, count, count, measured)
    assert place(wanted, balanced, count, count, measured) == balanced


def test_neighbors_of_a_heavy_slot_move_to_another_task() -> None:
    heavy = Seat("heavy", "default", 0)
    light = [Seat(f"light-{number}", "default", 0) for number in range(4)]
    measured = {heavy: 60.0 * MB} | dict.fromkeys(light, 5.0 * MB)
    before = {heavy: 0, light[0]: 0, light[1]: 0, light[2]: 1, light[3]: 1}
    after = place(before, before, 2, 2, measured)
    assert after[heavy] == before[heavy], "the heavy one stays"
    assert {after[seat] for seat in light} == {1}


def test_the_number_of_tasks_follows_the_load_and_never_shrinks_a_running_pool() -> None:
    pool = Pool(max_slots=3, slot_bytes_per_second=50 * MB)
    load = {Seat("a", "default", slot): 30.0 * MB for slot in range(4)}
    assert tasks_for(pool, 4, {}, 0) == 1
    assert tasks_for(pool, 4, load, 1) == 3
    assert tasks_for(pool, 4, {}, 3) == 3
    assert tasks_for(pool, 1, {}, 0) == 1
    assert tasks_for(Pool(slots=2), 1, {}, 1) == 2
    assert tasks_for(Pool(max_slots=2), 9, dict.fromkeys(load, 1000.0 * MB), 2) == 2


def test_a_spec_places_every_slot_of_its_members_and_keeps_what_runs() -> None:
    pool = Pool(slots=2, slot_memory_mib=100)
    first = pool_spec("p", pool, [member("b"), member("a", 2)], None, "/c", measured={}, runs=False, balance=True)
    assert (first.pool, first.slots, first.slot_memory_bytes, first.checkpoint_dir) == ("p", 2, 100 << 20, "/c")
    assert [one.link for one in first.members] == ["a", "b"]
    assert {one.checkpoint_dir for one in first.members} == {"/c"}
    assert {placed.seat for placed in first.placement} == set(seats_of(first.members))
    more = pool_spec("p", pool, [*first.members, member("c")], first, "/c", measured={}, runs=True, balance=False)
    assert set(first.placement) <= set(more.placement) or [
        placed for placed in more.placement if placed.link != "c"
    ] == list(first.placement)
    again = pool_spec("p", pool, list(more.members), more, "/c", measured={}, runs=True, balance=False)
    assert again == more


def test_loads_of_other_links_are_remembered() -> None:
    pool = Pool(slots=1)
    heavy = Seat("a", "default", 0)
    first = pool_spec("p", pool, [member("a")], None, "/c", measured={heavy: 5e6}, runs=False, balance=True)
    later = pool_spec(
        "p", pool, [member("a"), member("b")], first, "/c",
        measured={Seat("b", "default", 0): 1e6}, runs=True, balance=True,
    )  # fmt: skip
    assert later.loads == {"a/default/0": 5e6, "b/default/0": 1e6}
    assert pool_spec("p", pool, [member("b")], later, "/c", measured={}, runs=True, balance=True).loads == {
        "b/default/0": 1e6
    }


def test_a_task_hosts_what_is_placed_in_it() -> None:
    spec = pool_spec("p", Pool(slots=2), [member("a"), member("b")], None, "/c", measured={}, runs=False, balance=True)
    hosted = [spec.hosted_by(task) for task in range(3)]
    assert sorted(seat for some in hosted for seat in some) == seats_of(spec.members)
    assert [len(some) for some in hosted] == [1, 1, 0]
    assert all(found.link == seat.link for some in hosted for seat, found in some.items())
