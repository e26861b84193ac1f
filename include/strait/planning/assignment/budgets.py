"""Distributes the bandwidth budgets of a link over its slots. Pure.

A budget applies to the whole link, so its shares are distributed over the slots of all task groups: in proportion to
the measured load of their partitions, or to the number of partitions until load has been measured. The backfill task
group gets the remainder: its backlog always needs more bandwidth than newly written records, which it must never delay.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from strait.config.links import BackfillBudget, Topics
from strait.model import TopicPartition
from strait.planning.assignment.slots import Place
from strait.planning.assignment.spread import Loads, weights_of
from strait.state.schema import Budget, Plan, PlannedBackfill, PlannedTopic

ALIKE = 0.25
"""If no share differs from the previous one by more than this fraction, the previous shares are kept: loads fluctuate,
and each published plan has a cost."""

LIVE_HEADROOM = 1.5
"""Bandwidth reserved for partitions outside the backfill task group, as a multiple of their load, since the load can
grow before the next plan. More than 1 + `ALIKE`: only their replicated bytes are measured, so a share that is used up must grow by
enough to count as another one."""

LEAST = 0.05
"""Minimum fraction of a budget for the backfill task group, and for all other task groups together."""

Shares = Mapping[str, tuple[float, ...]]


class Lane(NamedTuple):
    """The backfill task group.

    Attributes:
        limits: its own; None: it has none.
        closed: it is outside of its hours, so that it copies nothing.
    """

    group: str
    limits: BackfillBudget | None = None
    closed: bool = False

    @classmethod
    def of(cls, group: str, limits: BackfillBudget | None, now_ms: int) -> "Lane":
        opening = None if limits is None else limits.opening
        return cls(group, limits, opening is not None and not opening.is_open(now_ms))

    @property
    def takes_late(self) -> bool:
        """Whether partitions with a large lag move to it. With hours only new partitions do: those that are replicated
        already would stop until the hours start."""
        return self.limits is None or not self.limits.hours

    def leaves(self, limit: int) -> float:
        """Return the fraction of a budget that it cannot use. Some is always kept for it, for the time from the start of
        its hours to the next plan."""
        if self.closed:
            return 1 - LEAST
        own = None if self.limits is None else self.limits.bytes_per_second
        return 0.0 if own is None else min(1 - LEAST, max(0.0, 1 - own / limit))


def budgets_of(
    limits: Mapping[str, int],
    class_of: Mapping[str, str],
    places: Mapping[TopicPartition, Place],
    slots: Mapping[str, int],
    loads: Loads,
    previous: Mapping[str, Plan],
    lane: Lane | None = None,
) -> dict[str, tuple[Budget, ...]]:
    """Return task group -> the link's budget, then each class's by name, with the share of each slot of the group.

    Args:
        limits: as of `limits_of`.
        class_of: source topic -> its class.
        places: partition -> the slot that replicates it.
        slots: task group -> its number of slots.
        loads: bytes per second of the partitions that were measured.

    ``lane`` is the backfill task group; None: the link has none.
    """
    found: dict[str, list[Budget]] = {group: [] for group in slots}
    weights = weights_of(places, loads) if limits else {}
    for name, limit in limits.items():
        of_class = {at: place for at, place in places.items() if name in ("", class_of[at.topic])}
        shares = _shares(of_class, slots, weights)
        others = [] if lane is None else [at for at, place in of_class.items() if place.group != lane.group]
        if lane is not None and 0 < len(others) < len(of_class):
            shares = _with_lane(shares, lane.group, max(_kept_for(others, loads, limit), lane.leaves(limit)))
        before = _before(previous, slots, name, limit)
        for group, of_group in (before if _alike(before, shares) else shares).items():
            found[group].append(Budget(topic_class=name, bytes_per_second=limit, slot_shares=of_group))
    return {group: tuple(budgets) for group, budgets in found.items()}


def backfill_of(
    lane: Lane, places: Mapping[TopicPartition, Place], slots: Mapping[str, int], loads: Loads, previous: Plan | None
) -> PlannedBackfill | None:
    """Return the limits of the backfill task group, with the share of each of its slots; None: it has none."""
    limits = lane.limits
    if limits is None:
        return None
    budget = None
    if limits.bytes_per_second is not None:
        own = {at: place for at, place in places.items() if place.group == lane.group}
        shares = _shares(own, {lane.group: slots[lane.group]}, weights_of(own, loads))
        known = None if previous is None or previous.backfill is None else previous.backfill.budget
        before = {} if known is None else {lane.group: known.slot_shares}
        dealt = (before if _alike(before, shares) else shares)[lane.group]
        budget = Budget(bytes_per_second=limits.bytes_per_second, slot_shares=dealt)
    return PlannedBackfill(budget=budget, hours=limits.hours, timezone=limits.timezone)


def backfill_dealt_anew(
    backfill: PlannedBackfill | None, topics: Sequence[PlannedTopic], slots: int
) -> PlannedBackfill | None:
    """As `dealt_anew`, for the limits of the backfill task group."""
    if backfill is None or backfill.budget is None:
        return backfill
    return backfill.model_copy(update={"budget": dealt_anew(backfill.budget, topics, slots)})


def limits_of(topics: Topics) -> dict[str, int]:
    """Return topic class -> its configured budget in bytes per second, the link's first, as that of ""."""
    whole = {} if topics.budget.bytes_per_second is None else {"": topics.budget.bytes_per_second}
    return whole | dict(sorted(topics.budget.classes.items()))


def dealt_anew(budget: Budget, topics: Sequence[PlannedTopic], slots: int) -> Budget:
    """Redistribute a task group's share of a budget by the number of partitions that each slot now replicates."""
    group = sum(budget.slot_shares) or LEAST  # it had nothing to copy, so the others have all until the next plan
    counts = [0] * slots
    for topic in topics:
        if budget.topic_class in ("", topic.policy.topic_class):
            for slot in topic.slots:
                if slot is not None:
                    counts[slot] += 1
    total = sum(counts)
    # The sum of shares that are all of the budget may exceed 1 by a rounding error, and no reader accepts such a share.
    shares = tuple(min(1.0, group * (count / total if total else 1 / slots)) for count in counts)
    return budget.model_copy(update={"slot_shares": shares})


def _shares(
    places: Mapping[TopicPartition, Place], slots: Mapping[str, int], weights: Mapping[TopicPartition, int]
) -> Shares:
    """Return each slot's share; equal shares if nothing is replicated, so that the first partition to come has one."""
    sums = {group: [0] * count for group, count in slots.items()}
    for partition, place in places.items():
        sums[place.group][place.slot] += weights[partition]
    total = sum(map(sum, sums.values()))
    every = sum(slots.values())
    return {group: tuple(one / total if total else 1 / every for one in of_slots) for group, of_slots in sums.items()}


def _kept_for(others: Sequence[TopicPartition], loads: Loads, limit: int) -> float:
    """Return the fraction of a budget reserved for partitions outside the backfill task group.

    Nearly all of the budget until they are measured.
    """
    measured = [loads[partition] for partition in others if partition in loads]
    if others and not measured:
        return 1 - LEAST
    demand = sum(measured) * len(others) / len(measured) if measured else 0.0
    return min(1 - LEAST, max(LEAST, LIVE_HEADROOM * demand / limit))


def _with_lane(shares: Shares, lane: str, kept: float) -> Shares:
    """Rescale the shares so that the backfill task group has the fraction that is not ``kept`` for the others."""
    of_lane = sum(shares[lane])
    parts = {group: (1 - kept) / of_lane if group == lane else kept / (1 - of_lane) for group in shares}
    return {group: tuple(one * parts[group] for one in of_slots) for group, of_slots in shares.items()}


def _before(previous: Mapping[str, Plan], slots: Mapping[str, int], topic_class: str, limit: int) -> Shares:
    return {
        group: budget.slot_shares
        for group, plan in previous.items()
        for budget in plan.budgets
        if group in slots and (budget.topic_class, budget.bytes_per_second) == (topic_class, limit)
    }


def _alike(before: Shares, now: Shares) -> bool:
    if before.keys() != now.keys() or any(len(before[group]) != len(now[group]) for group in now):
        return False
    pairs = [pair for group in now for pair in zip(before[group], now[group], strict=True)]
    # A slot has no share if it replicates no partition of the budget; a slot that replicates one must have a share.
    return all((one > 0) == (other > 0) and abs(one - other) <= ALIKE * max(one, other) for one, other in pairs)
