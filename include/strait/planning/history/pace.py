"""Measures how fast partitions catch up and which a budget throttles, from two reports some seconds apart. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from strait.model import TopicPartition
from strait.state.report_records import PartitionReport, Report
from strait.state.schema import Plan
from strait.state.slot_reports import said_at

USED_UP = 0.9
"""A budget used to at least this fraction throttles every partition that lags: slots stay slightly below the budget."""

Reports = Mapping[tuple[str, int], Sequence[Report]]


@dataclass(frozen=True, slots=True)
class Pace:
    """Pace of one task group.

    Attributes:
        seconds_left: partition -> time until it has caught up, if its lag decreases.
        records_per_second: partition -> its replication rate.
        throttled: partition -> the budget that throttles it, as text.
    """

    seconds_left: Mapping[TopicPartition, float] = field(default_factory=dict)
    throttled: Mapping[TopicPartition, str] = field(default_factory=dict)
    records_per_second: Mapping[TopicPartition, float] = field(default_factory=dict)


def pace_of(plan: Plan, earlier: Reports, now: Reports) -> Pace:
    """Compare two reports of each running slot. A slot that was started between them has no pace yet."""
    pairs = list(_pairs(plan.group, earlier, now))
    rates = {pair.partition: max(0, pair.after.records - pair.before.records) / pair.seconds for pair in pairs}
    return Pace(dict(_seconds_left(pairs)), dict(_throttled(plan, pairs)), rates)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two reports of one partition by the same slot, ``seconds`` apart."""

    partition: TopicPartition
    before: PartitionReport
    after: PartitionReport
    seconds: float


def _pairs(group: str, earlier: Reports, now: Reports) -> Iterator[_Pair]:
    for slot, parts in now.items():
        before = {(report.application, report.part): report for report in earlier.get(slot, ())}
        for report in parts if slot[0] == group else ():
            other = before.get((report.application, report.part))
            if other is None or other.started_at_ms != report.started_at_ms or other.at_ms >= report.at_ms:
                continue
            rows = {(item.topic, item.partition): item for item in other.partitions}
            for item in report.partitions:
                then = rows.get((item.topic, item.partition))
                if then is not None:
                    where = TopicPartition(item.topic, item.partition)
                    moved_ms = said_at(item, report) - said_at(then, other)  # 0: not reported again
                    yield _Pair(where, then, item, (moved_ms if moved_ms > 0 else report.at_ms - other.at_ms) / 1000)


def _seconds_left(pairs: Sequence[_Pair]) -> Iterator[tuple[TopicPartition, float]]:
    for pair in pairs:
        nearer = pair.before.lag_records - pair.after.lag_records
        if nearer > 0 and pair.after.lag_records > 0:
            yield pair.partition, pair.after.lag_records * pair.seconds / nearer


def _throttled(plan: Plan, pairs: Sequence[_Pair]) -> Iterator[tuple[TopicPartition, str]]:
    class_of = {topic.source: topic.policy.topic_class for topic in plan.topics}
    of_group = plan.backfill.budget if plan.backfill is not None else None
    for budget in (*plan.budgets, *(() if of_group is None else (of_group,))):
        sharing = [pair for pair in pairs if budget.topic_class in ("", class_of.get(pair.partition.topic))]
        rate = sum(max(0, pair.after.bytes - pair.before.bytes) / pair.seconds for pair in sharing)
        if rate >= budget.bytes_per_second * sum(budget.slot_shares) * USED_UP:  # this task group's share
            whose = f"class {budget.topic_class}" if budget.topic_class else "the link"
            whose = f"task group {plan.group}" if budget is of_group else whose
            for pair in sharing:
                if pair.after.lag_records > 0:
                    yield pair.partition, f"{whose} may write {budget.bytes_per_second:,} bytes/s, and does"
