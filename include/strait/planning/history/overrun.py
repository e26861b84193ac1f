"""Predicts when the source's retention will reach records that are not replicated yet. Pure.

Retention deletes whole segments, at most every few minutes, so its rate shows only over hours.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from strait.model import TopicPartition
from strait.state.report_records import Report

WINDOW_SECONDS = 6 * 3600
"""Time between the two observations that the deletion rate is derived from, if reports go back that far."""

WARN_SECONDS = 24 * 3600
"""Losses further ahead than this are not shown to operators."""

Reports = Mapping[tuple[str, int], Sequence[Report]]


class Observation(NamedTuple):
    """Last reported state of one partition. Offsets are the source's; -1: unknown. ``left_records``: not replicated
    yet, including those that an open transaction holds back."""

    at_ms: int
    log_start: int
    position: int
    left_records: int


Observations = Mapping[TopicPartition, Observation]


def observations(group: str, reports: Reports, of: Container[TopicPartition] | None = None) -> Observations:
    """Return the newest observation of each partition of a task group, from any of its slots.

    Args:
        of: only these partitions.
    """
    found = (each for each in _seen(group, reports) if of is None or each[0] in of)
    return dict(sorted(found, key=lambda each: each[1].at_ms))


def losses_ahead(group: str, earlier: Reports, now: Reports) -> dict[TopicPartition, float]:
    """Return the seconds until records are deleted that are not replicated, by partition.

    Assumes that the partition makes no progress from now on and that deletion keeps its rate. Only partitions that have
    records left to replicate, and whose source deleted records between the reports, are included.
    """
    behind = {place for place, seen in _seen(group, now) if seen.left_records > 0}
    return seconds_to_loss(observations(group, earlier, behind), observations(group, now, behind)) if behind else {}


def seconds_to_loss(earlier: Observations, later: Observations) -> dict[TopicPartition, float]:
    """As `losses_ahead`, from observations."""
    found = {}
    for partition, now in later.items():
        before = earlier.get(partition)
        if before is None or now.left_records <= 0 or min(before.log_start, now.log_start, now.position) < 0:
            continue
        seconds = (now.at_ms - before.at_ms) / 1000
        deleted = now.log_start - before.log_start
        if seconds > 0 and deleted > 0:
            found[partition] = max(0, now.position - now.log_start) * seconds / deleted
    return found


def lags(group: str, reports: Reports) -> bool:
    """Return whether any partition has records left to replicate, so that records could be lost at all."""
    return any(seen.left_records > 0 for _, seen in _seen(group, reports))


def _seen(group: str, reports: Reports) -> Iterator[tuple[TopicPartition, Observation]]:
    for (of_group, _), parts in reports.items():
        for report in parts if of_group == group else ():
            for item in report.partitions:
                left = item.lag_records + item.held_back_records
                seen = Observation(report.at_ms, item.log_start, item.position, left)
                yield TopicPartition(item.topic, item.partition), seen
