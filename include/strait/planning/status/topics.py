"""Sums up partitions by topic, those with problems first. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from strait.model import ranges
from strait.planning.status.rows import PartitionStatus, longest_lag
from strait.planning.status.status import known_total
from strait.planning.status.words import Badge, most_urgent, of_partition


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """One topic of a task group.

    Attributes:
        states: state -> number of partitions in it, the most frequent first.
        badges: the same as operators see it.
        lag_records: total of the partitions whose lag is known; -1: it is known of none. ``lag_seconds``: the maximum;
            -1: unknown.
        lag_unknown: number of the other partitions.
        records_per_second: None: unknown of every partition.
        seconds_to_loss: of the partition that retention reaches first; None: not foreseen.
        reasons: as text, the most urgent first: partitions and reason.
        urgency: 0: a partition needs a decision; 1: one waits; more: no action is needed.
    """

    topic: str
    partitions: int
    states: tuple[tuple[str, int], ...]
    lag_records: int
    lag_seconds: float
    seconds_to_loss: float | None
    reasons: tuple[str, ...]
    urgency: int
    badges: tuple[tuple[Badge, int], ...] = ()
    lag_unknown: int = 0
    records_per_second: float | None = None

    @property
    def badge(self) -> Badge:
        """The most urgent state of its partitions."""
        return most_urgent(badge for badge, _ in self.badges)


def by_topic(rows: Iterable[PartitionStatus], late: Collection[str] = ()) -> list[TopicSummary]:
    """Return the topics that need a decision first, then those that wait, then by lag.

    Args:
        late: topics that need an operator for any reason.
    """
    ordered = sorted(rows, key=lambda row: row.topic)
    found = [_summary(topic, list(of_topic), late) for topic, of_topic in groupby(ordered, key=lambda row: row.topic)]
    return sorted(found, key=lambda item: (item.urgency, -item.lag_records, item.topic))


def _summary(topic: str, rows: Sequence[PartitionStatus], late: Collection[str]) -> TopicSummary:
    by_reason: dict[str, list[PartitionStatus]] = {}
    for row in sorted(rows, key=_urgency):
        if row.reason:
            by_reason.setdefault(row.reason, []).append(row)
    lag_seconds = longest_lag(rows)
    return TopicSummary(
        topic,
        sum(row.partition is not None for row in rows),
        tuple(Counter(row.state for row in rows).most_common()),
        sum(max(0, row.lag_records) for row in rows) if any(row.lag_records >= 0 for row in rows) else -1,
        -1.0 if lag_seconds is None else lag_seconds,
        min((row.seconds_to_loss for row in rows if row.seconds_to_loss is not None), default=None),
        tuple(_reason(reason, of_reason, len(rows)) for reason, of_reason in by_reason.items()),
        min(_urgency(row) for row in rows),
        tuple(Counter(of_partition(row, late) for row in rows).most_common()),
        sum(row.lag_records < 0 for row in rows),
        known_total(row.records_per_second for row in rows),
    )


def _reason(reason: str, rows: Sequence[PartitionStatus], of: int) -> str:
    numbers = sorted(row.partition for row in rows if row.partition is not None)
    which = f"partition {ranges(numbers)}: " if numbers and len(numbers) < of else ""
    return f"{which}{reason}: {rows[0].detail}"


def _urgency(row: PartitionStatus) -> int:
    if row.needs_decision:
        return 0
    return {"waiting": 1, "starting": 2}.get(row.state, 3 if row.reason else 4)
