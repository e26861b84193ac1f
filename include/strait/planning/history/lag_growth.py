"""Detects partitions whose lag only grows, from reports of the last half hour. Pure.

The lag of a busy partition varies from report to report, so a few rising values prove nothing: the partition must also
be minutes late, or not advance.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from strait.model import TopicPartition
from strait.state.report_records import Report
from strait.state.slot_reports import lag_seconds

AGES_SECONDS = (1800, 1200, 600)
"""Ages of the earlier reports, oldest first. The lag must have grown between each two, and since the last."""

LATE_SECONDS = 300.0
"""Minimum lag of a partition that advances."""

Reports = Mapping[tuple[str, int], Sequence[Report]]


class Growth(NamedTuple):
    """Lag of a partition at the first and at the last of the reports. ``seconds``: -1: unknown."""

    before: int
    now: int
    seconds: float


class _Seen(NamedTuple):
    at_ms: int
    lag: int
    position: int
    seconds: float


def late(group: str, reports: Reports) -> bool:
    """Return whether earlier reports may show that the lag of a partition of this task group only grows."""
    return any(_may_grow(seen) for seen in _newest(group, reports).values())


def growing(group: str, earlier: Sequence[Reports], now: Reports) -> dict[TopicPartition, Growth]:
    """Return the partitions of a task group whose lag has grown between every two of these reports.

    Args:
        earlier: the reports of `AGES_SECONDS`, or the first after that time.
    """
    past = [_newest(group, reports) for reports in earlier]
    found = {}
    for place, last in _newest(group, now).items():
        if not _may_grow(last) or not past or not all(place in some for some in past):
            continue
        series = [*(some[place] for some in past), last]
        lags, stuck = [seen.lag for seen in series], len({seen.position for seen in series}) == 1
        rising = all(before < after for before, after in pairwise(lags))
        if rising and (stuck or last.seconds >= LATE_SECONDS):
            found[place] = Growth(lags[0], lags[-1], last.seconds if last.seconds > 0 else -1.0)
    return found


def _may_grow(seen: _Seen) -> bool:
    return seen.lag > 0 and (seen.seconds >= LATE_SECONDS or seen.seconds <= 0)


def _newest(group: str, reports: Reports) -> dict[TopicPartition, _Seen]:
    return dict(sorted(_all(group, reports), key=lambda each: each[1].at_ms))


def _all(group: str, reports: Reports) -> Iterator[tuple[TopicPartition, _Seen]]:
    for (of_group, _), parts in reports.items():
        for report in parts if of_group == group else ():
            for row in report.partitions:
                seconds = lag_seconds(row, report)
                yield (
                    TopicPartition(row.topic, row.partition),
                    _Seen(report.at_ms, row.lag_records, row.position, seconds),
                )
