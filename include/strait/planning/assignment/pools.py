"""Assigns the slots of a pool's links to the pool's Spark tasks. Pure.

It is the assignment of partitions to slots over again: a link's slot keeps its task, a new one goes to the task with the
least load, and others move only to relieve a task that is clearly overloaded. A move is always safe, but interrupts the
slot for a moment.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from strait.config.app_spec import AppSpec, Placed, PoolSpec, Seat
from strait.config.pools import Pool
from strait.model import TopicPartition
from strait.planning.assignment.spread import assign

Loads = Mapping[Seat, float]


def seats_of(members: Iterable[AppSpec]) -> list[Seat]:
    """Return the slots of these task groups."""
    return [Seat(member.link, member.group, slot) for member in members for slot in range(member.slots)]


def tasks_for(pool: Pool, seats: int, loads: Loads, present: int) -> int:
    """Return how many tasks the pool needs. A running pool has never fewer than before, since that would restart it.

    Args:
        loads: bytes per second of the slots that were measured.
        present: current number of tasks; 0 if the pool does not run.
    """
    if pool.slots != "auto":
        return pool.slots
    needed = max(1, present, math.ceil(sum(loads.values()) / pool.slot_bytes_per_second))
    return min(needed, max(1, present, seats), pool.max_slots)


def place(
    seats: Iterable[Seat], previous: Mapping[Seat, int], tasks: int, previous_tasks: int, loads: Loads
) -> dict[Seat, int]:
    """Return the task of each slot, from 0 to ``tasks`` - 1; see `strait.planning.assignment.spread.assign`."""
    key_of = {seat: TopicPartition(f"{seat.link}/{seat.group}", seat.slot) for seat in seats}
    placed = assign(
        key_of.values(),
        {key_of[seat]: task for seat, task in previous.items() if seat in key_of},
        tasks,
        previous_tasks,
        {key_of[seat]: load for seat, load in loads.items() if seat in key_of},
    )
    return {seat: placed[key] for seat, key in key_of.items()}


def pool_spec(
    name: str,
    pool: Pool,
    members: Sequence[AppSpec],
    before: PoolSpec | None,
    checkpoint_dir: str,
    *,
    measured: Loads,
    runs: bool,
    balance: bool,
) -> PoolSpec:
    """Return the spec of the pool's application with these members. Running slots keep their task if
    possible.

    Args:
        before: the spec that was made last; None: there was none.
        measured: bytes per second of slots that were measured now.
        runs: whether the application runs with ``before``, so that moves and another number of tasks have a price.
        balance: whether slots may be moved to relieve a task by the measured loads.
    """
    in_order = sorted(members, key=lambda member: (member.link, member.group))
    seats = seats_of(in_order)
    known = ({} if before is None else dict(before.loads)) | {str(seat): load for seat, load in measured.items()}
    loads = {seat: known[str(seat)] for seat in seats if str(seat) in known}
    present = before.slots if before is not None and runs else 0
    previous = {placed.seat: placed.task for placed in before.placement} if before is not None and present else {}
    tasks = tasks_for(pool, len(seats), loads if balance else {}, present)
    tasks_of = place(seats, previous, tasks, present, loads if balance or not present else {})
    return PoolSpec(
        pool=name,
        slots=tasks,
        slot_memory_bytes=pool.slot_memory_mib << 20,
        checkpoint_dir=checkpoint_dir,
        members=tuple(member.model_copy(update={"checkpoint_dir": checkpoint_dir}) for member in in_order),
        placement=tuple(
            Placed(link=seat.link, group=seat.group, slot=seat.slot, task=tasks_of[seat]) for seat in seats
        ),
        loads={str(seat): round(load) for seat, load in loads.items()},
    )
