"""Definition of a metric, and how its values are taken from an observation. An unknown value has no sample. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from strait.exporter.observation import Observation
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, Status
from strait.state.report_records import LATENCY_BOUNDS_MS, Report
from strait.state.verified import Verified
from strait.wire.shapes import Built

UNKNOWN_ZONE = "unknown"
Labels = tuple[str, ...]
Values = Iterator[tuple[Labels, Any]]


class Histogram(NamedTuple):
    """Cumulative counts by upper bound, the last one without a bound; and the sum. Both are in the metric's unit."""

    buckets: tuple[tuple[str, float], ...]
    sum: float


class Family(NamedTuple):
    """One metric of links.

    Attributes:
        name: with its unit; of a counter without ``_total``.
        labels: besides ``link``.
        values: returns those of one link.
    """

    name: str
    kind: str
    help: str
    labels: Labels
    values: Callable[[Observation], Values]


class Places(NamedTuple):
    """One metric of a topic's partitions together, or of each of them.

    Attributes:
        value: of partitions of one topic and task group; None: unknown.
    """

    name: str
    kind: str
    help: str
    value: Callable[[Sequence[PartitionStatus]], float | None]


def of_groups(value: Callable[[Status], float | None]) -> Callable[[Observation], Values]:
    def values(seen: Observation) -> Values:
        for status in seen.statuses:
            if (found := value(status)) is not None:
                yield (status.group,), found

    return values


def of_slots(value: Callable[[SlotStatus], float | None]) -> Callable[[Observation], Values]:
    """Return a function that yields the values of slots that have ever reported."""

    def values(seen: Observation) -> Values:
        for status in seen.statuses:
            for slot in status.slots:
                if slot.age_ms is not None and (found := value(slot)) is not None:
                    yield (status.group, str(slot.slot)), found

    return values


def of_reports(value: Callable[[Report], Any]) -> Callable[[Observation], Values]:
    """Return a function that yields values that are the same in each part of a slot's report."""

    def values(seen: Observation) -> Values:
        for group, slot, parts in reports_in_plan(seen):
            if (found := value(parts[0])) is not None:
                yield (group, slot), found

    return values


def reports_in_plan(seen: Observation) -> Iterator[tuple[str, str, Sequence[Report]]]:
    """Yield (task group, slot, the parts of its report) of the slots of the current plans."""
    for (group, slot), parts in sorted(seen.reports.items()):
        if parts and group in seen.plans and slot < seen.plans[group].slots:
            yield group, str(slot), parts


def of_link(value: Callable[[Observation], float | None]) -> Callable[[Observation], Values]:
    def values(seen: Observation) -> Values:
        if (found := value(seen)) is not None:
            yield (), found

    return values


def histogram(report: Report) -> Histogram | None:
    if not report.latency_counts:
        return None  # a report of an older version
    total, buckets = 0, []
    for bound, count in zip(
        (*(f"{ms / 1000:g}" for ms in LATENCY_BOUNDS_MS), "+Inf"), report.latency_counts, strict=True
    ):
        total += count
        buckets.append((bound, float(total)))
    return Histogram(tuple(buckets), report.latency_sum_ms / 1000)


def batches(seen: Observation) -> Values:
    for (group, slot), report in of_reports(lambda one: one)(seen):
        yield (group, slot, "passed"), report.batches - sum(report.built.values())
        for why in Built:
            yield (group, slot, str(why)), report.built.get(why, 0)


def traffic(seen: Observation) -> Values:
    """Yield the bytes exchanged between a slot's zone and each zone of brokers."""
    for (group, slot), zones in of_reports(lambda report: report.traffic)(seen):
        for zone in zones:
            names = zone.from_zone or UNKNOWN_ZONE, zone.to_zone or UNKNOWN_ZONE
            yield (group, slot, zone.cluster, *names), zone.bytes


def waiting(seen: Observation) -> Values:
    for status in seen.statuses:
        for reason, count in sorted(Counter(row.reason for row in status.waiting).items()):
            yield (status.group, reason), count


def partitions(seen: Observation) -> Values:
    for status in seen.statuses:
        for state, count in sorted(
            Counter(row.state for row in status.partitions if row.partition is not None).items()
        ):
            yield (status.group, state), count


def losses(seen: Observation) -> Values:
    yield from sorted(seen.loss_counts.items())


def quarantined(seen: Observation) -> Values:
    yield from (((topic,), count) for topic, count in sorted(seen.quarantined.items()))


def budgets(seen: Observation) -> Values:
    """Yield each budget's limit in bytes per second once, although every task group's plan has its share of it."""
    total: Counter[str] = Counter()
    for plan in seen.plans.values():
        for budget in plan.budgets:
            total[budget.topic_class] = round(budget.bytes_per_second)
    yield from (((topic_class,), limit) for topic_class, limit in sorted(total.items()))


def backfill_budget(seen: Observation) -> Values:
    for group, plan in sorted(seen.plans.items()):
        if plan.backfill is not None and plan.backfill.budget is not None:
            yield (group,), plan.backfill.budget.bytes_per_second


def budget_use(seen: Observation) -> Values:
    """Yield the bytes that slots have replicated under each budget. A topic is included in its class's and the
    link's."""
    for group, slot, parts in reports_in_plan(seen):
        plan = seen.plans[group]
        if not plan.budgets:
            continue  # avoids counting every partition at each scrape
        class_of = {topic.source: topic.policy.topic_class for topic in plan.topics}
        copied: Counter[str] = Counter()
        for row in (row for part in parts for row in part.partitions):
            for topic_class in {"", class_of.get(row.topic, "")}:
                copied[topic_class] += row.bytes
        for budget in plan.budgets:
            yield (group, slot, budget.topic_class), copied[budget.topic_class]


def out_of_sync(seen: Observation) -> Values:
    if seen.group_sync is not None:
        yield from (((one.group,), 1) for one in seen.group_sync.out_of_sync)


def group_offsets(seen: Observation) -> Values:
    if seen.group_sync is not None:
        yield from (((state,), count) for state, count in sorted(seen.group_sync.offsets.items()))


def of_failovers(field: str, *kinds: str) -> Callable[[Observation], Values]:
    def values(seen: Observation) -> Values:
        for kind, record in sorted(seen.failovers.items()):
            value = getattr(record, field)
            if kind in kinds and value is not None:
                yield (kind,), value

    return values


def audited(value: Callable[[Verified], float | None]) -> Callable[[Observation], Values]:
    def values(seen: Observation) -> Values:
        for topic, result in sorted(seen.audited.items()):
            if (found := value(result)) is not None:
                yield (topic,), found

    return values


def score(seen: Observation) -> float | None:
    rehearsal = seen.failovers.get("rehearsal")
    return None if rehearsal is None or rehearsal.score is None else rehearsal.score / 100


def heartbeat(value: Callable[[SlotStatus], float | None]) -> Callable[[Observation], Values]:
    return of_groups(lambda status: None if status.heartbeat is None else value(status.heartbeat))


def seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def known_sum(values: Iterable[int]) -> float | None:
    known = [value for value in values if value >= 0]
    return float(sum(known)) if known else None


def soonest(rows: Sequence[PartitionStatus]) -> float | None:
    return min((row.seconds_to_loss for row in rows if row.seconds_to_loss is not None), default=None)


def places(status: Status, *, by_partition: bool) -> Iterator[tuple[Labels, list[PartitionStatus]]]:
    """Yield (topic) or (topic, partition), and its rows."""
    for topic, of_topic in groupby(status.partitions, key=lambda row: row.topic):
        rows = list(of_topic)
        if by_partition:
            yield from (((topic, str(row.partition)), [row]) for row in rows if row.partition is not None)
        else:
            yield (topic,), rows
