"""The last reports about each partition, of applications that may not run any more."""

import sys
from collections.abc import Callable, Collection, Mapping

from strait.control.report_history import reports_between
from strait.model import TopicPartition
from strait.planning.recovery_point import LastWords, LastWordsRead
from strait.state.codec import Naming, is_of_groups
from strait.state.group_sync_records import GroupSyncReport
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import REPORTS_SINCE_SECONDS
from strait.state.report_changes import FailureReport, TrafficReport
from strait.state.schema import Plan
from strait.waiting import unix_ms

_DAY_SECONDS = 86_400
_LOOK_BACK_SECONDS = (REPORTS_SINCE_SECONDS, 600, 1800, 3600, 7200, 14_400, 28_800, 57_600, _DAY_SECONDS)
"""Seconds of reports to search; they are kept for a day. Each slot reports all its partitions within the first of these
times."""
_FEW = 20
"""If less than one of 20 partitions is unknown, hardly any older report is decoded: all of them are read in one pass."""


def read_last_words(link: ConfiguredLink, plans: Mapping[str, Plan]) -> tuple[LastWords, GroupSyncReport | None]:
    """Return the last reports, within a day, about each planned partition and about consumer groups. Of older reports only
    those are decoded that have a partition about which newer ones left something open.

    Raises:
        ClusterUnavailable, NotAuthorized
    """
    read, group_sync = LastWordsRead(plans), None
    since_seconds, until_ms = 0, sys.maxsize
    for seconds in _LOOK_BACK_SECONDS:
        if read.complete and (group_sync is not None or not link.settings.consumer_groups.sync):
            break
        if seconds <= since_seconds:
            continue
        few = since_seconds and len(read.open) * _FEW <= len(read.words)
        since_seconds = _DAY_SECONDS if few else seconds
        since_ms = unix_ms() - since_seconds * 1000
        wanted = _wanted(read.open, groups=group_sync is None)
        for report in reports_between(*link.destination, link.name, since_ms, until_ms, wanted=wanted):
            if isinstance(report, GroupSyncReport):
                group_sync = report
            elif not isinstance(report, TrafficReport | FailureReport):
                read.take(report)
        until_ms = since_ms  # the next pass reads older reports only
    return read.words, group_sync


def _wanted(places: Collection[TopicPartition], *, groups: bool) -> Callable[[bytes, bytes], bool]:
    """Return whether a record may have something about one of these partitions or, if asked for, about groups."""
    names = Naming(places)
    return lambda key, value: groups if is_of_groups(key) else names(value)
