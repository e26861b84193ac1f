"""Predicts when the source's retention will reach what is not copied yet. Pure.

Retention deletes whole segments, every few minutes at most, so its pace shows only over hours.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

from strait.model import TopicPartition
from strait.state.schema import Report

WINDOW_SECONDS = 6 * 3600
"""Between the two observations that the pace is taken from, where reports reach back so far."""

WARN_SECONDS = 24 * 3600
"""People are shown nothing that is further away."""

Reports = Mapping[tuple[str, int], Sequence[Report]]


class Observation(NamedTuple):
    """One partition as last reported. Offsets are the source's; -1: not known. ``left_records``: not copied yet, whether
    or not they can be read already."""

    at_ms: int
    log_start: int
    position: int
    left_records: int


Observations = Mapping[TopicPartition, Observation]


def observations(group: str, reports: Reports, of: Container[TopicPartition] | None = None) -> Observations:
    """The newest word on each partition, whoever said it. ``of``: on these alone."""
    found = (each for each in _seen(group, reports) if of is None or each[0] in of)
    return dict(sorted(found, key=lambda each: each[1].at_ms))


def losses_ahead(group: str, earlier: Reports, now: Reports) -> dict[TopicPartition, float]:
    """Seconds until records are deleted that are not copied, if the partition stood still from now on and deletion kept
    its pace. Only of partitions that have something left to copy and whose source was seen to delete."""
    behind = {place for place, seen in _seen(group, now) if seen.left_records > 0}
    return seconds_to_loss(observations(group, earlier, behind), observations(group, now, behind)) if behind else {}


def seconds_to_loss(earlier: Observations, later: Observations) -> dict[TopicPartition, float]:
    """The same, of what was observed."""
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
    """Whether anything could be lost at all."""
    return any(seen.left_records > 0 for _, seen in _seen(group, reports))


def duration(seconds: float) -> str:
    """For people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _seen(group: str, reports: Reports) -> Iterator[tuple[TopicPartition, Observation]]:
    for (of_group, _), parts in reports.items():
        for report in parts if of_group == group else ():
            for item in report.partitions:
                left = item.lag_records + item.held_back_records
                seen = Observation(report.at_ms, item.log_start, item.position, left)
                yield TopicPartition(item.topic, item.partition), seen
