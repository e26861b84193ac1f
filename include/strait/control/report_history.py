"""Past reports, which are kept for a day: of hours ago, to predict losses, and of a minute ago, to measure loads; and
the minutes and hours that slots roll up. Records are processed one by one, and not kept."""

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from strait.config import naming
from strait.config.links import Link
from strait.kafka.reading import read_topic
from strait.model import TopicPartition
from strait.planning.history.load import WINDOW_SECONDS as LOAD_WINDOW_SECONDS
from strait.planning.history.load import Load, depends_on_load, loads_of
from strait.planning.history.overrun import WINDOW_SECONDS, Reports, lags
from strait.state.codec import SlotReport, Unreadable, decode, decode_report
from strait.state.group_sync_records import GroupSyncReport
from strait.state.link_handle import LinkHandle
from strait.state.reader import StateReader
from strait.state.report_changes import REPEAT_SECONDS, HistoryPoint
from strait.state.slot_reports import SlotReports
from strait.waiting import unix_ms

_FRESH_SECONDS = 5.0  # for which measured loads are reused: one cycle plans twice
_PAST_SECONDS = 300.0  # for which past reports are reused
_SPAN_MS = 5_000  # in which every slot reports several times
_WHOLE_MS = REPEAT_SECONDS * 1000  # in which it reports every partition


class PastReports:
    """The reports of a link's slots from `WINDOW_SECONDS` ago, read again after 5 min."""

    def __init__(self, properties: Mapping[str, str], cluster: str, link: str) -> None:
        self._properties = properties
        self._cluster = cluster
        self._link = link
        self._found: Reports = {}
        self._due_at = 0.0

    def of(self, group: str, reports: Reports) -> Reports:
        """Return these reports or, if there are none so early, the first ones after that time; nothing if no partition
        of the group lags, so that nothing can be lost.

        Args:
            reports: the present ones.

        Raises:
            ClusterUnavailable, NotAuthorized
        """
        if not lags(group, reports):
            return {}
        if time.monotonic() >= self._due_at:
            at_ms = unix_ms() - WINDOW_SECONDS * 1000
            self._found = reports_at(self._properties, self._cluster, self._link, at_ms)
            self._due_at = time.monotonic() + _PAST_SECONDS if self._found else 0.0
        return self._found


class LoadMonitor:
    """The loads of a link's partitions, measured again after 5 s.

    Args:
        reader: returns the reader that follows the link's reports.
    """

    def __init__(self, link: Link, handle: LinkHandle, reader: Callable[[], StateReader]) -> None:
        self._link = link
        self._handle = handle
        self._reader = reader
        self._loads: Mapping[TopicPartition, Load] = {}
        self._looks: deque[tuple[float, Reports]] = deque()  # reports at these times; the first is as old as needed
        self._due_at = 0.0

    def now(self) -> Mapping[TopicPartition, Load]:
        """Return the loads from the latest reports; nothing if no decision of the link depends on them.

        Raises:
            ClusterUnavailable, NotAuthorized, StateError
        """
        if depends_on_load(self._link) and time.monotonic() >= self._due_at:
            self._loads = self._look()
            self._due_at = time.monotonic() + _FRESH_SECONDS
        return self._loads

    def _look(self) -> Mapping[TopicPartition, Load]:
        reader = self._reader()
        reader.catch_up()
        if not reader.reports:
            return {}
        now, now_ms = time.monotonic(), unix_ms()
        while len(self._looks) > 1 and self._looks[1][0] <= now - LOAD_WINDOW_SECONDS:
            self._looks.popleft()
        if self._looks and LOAD_WINDOW_SECONDS <= now - self._looks[0][0] <= 2 * LOAD_WINDOW_SECONDS:
            earlier = self._looks[0][1]
        else:
            at_ms = now_ms - round(LOAD_WINDOW_SECONDS * 1000)
            earlier = reports_at(*self._handle.destination, self._handle.name, at_ms)
        self._looks.append((now, dict(reader.reports)))
        return loads_of(earlier, reader.reports, now_ms)


def reports_between(
    properties: Mapping[str, str],
    cluster: str,
    link: str,
    since_ms: int,
    until_ms: int,
    *,
    wanted: Callable[[bytes, bytes], bool] = lambda _, __: True,
) -> Iterator[SlotReport | GroupSyncReport]:
    """Yield the reports of a time range, in order; unreadable records are skipped.

    Args:
        wanted: filters by key and value of a record; others are not decoded.

    Raises:
        ClusterUnavailable, NotAuthorized
    """
    for message in read_topic(properties, cluster, naming.reports_topic(link), since_ms=since_ms):
        if message.timestamp()[1] >= until_ms:
            return
        key, value = message.key() or b"", message.value() or b""
        if wanted(key, value):
            with contextlib.suppress(Unreadable):
                yield decode_report(key, value)


def history_points(
    properties: Mapping[str, str], cluster: str, link: str, span: Literal["minute", "hour"], since_ms: int
) -> Iterator[HistoryPoint]:
    """Yield the minutes or hours of a link's past, in no order; unreadable records are skipped.

    Raises:
        ClusterUnavailable, NotAuthorized
    """
    mark = f'"span":"{span}"'.encode()
    for message in read_topic(properties, cluster, naming.history_topic(link)):
        if mark in (message.key() or b""):
            with contextlib.suppress(Unreadable):
                point = decode(HistoryPoint, message.key(), message.value() or b"")
                if point.at_ms >= since_ms:
                    yield point


def reports_at(properties: Mapping[str, str], cluster: str, link: str, at_ms: int) -> Reports:
    """Return the slots' reports at that time or, if there are none so early, the first ones after it. If these are from
    long ago, the period in which slots repeat everything counts as one moment."""
    found, ends_ms, now_ms = SlotReports(), None, unix_ms()
    for message in read_topic(properties, cluster, naming.reports_topic(link), since_ms=at_ms - _WHOLE_MS):
        _, written_ms = message.timestamp()
        if ends_ms is None:
            moment_ms = _WHOLE_MS if written_ms + 2 * _WHOLE_MS < now_ms else 0
            ends_ms = max(at_ms, written_ms + moment_ms) + _SPAN_MS
        if written_ms > ends_ms:
            break
        with contextlib.suppress(Unreadable):
            report = decode_report(message.key(), message.value() or b"")
            if not isinstance(report, GroupSyncReport):
                found.take(report)
    return found
