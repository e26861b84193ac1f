"""Reports of some time ago, which are kept for a day: of hours, to foresee losses, and of a minute, to measure
loads."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from strait.config import naming
from strait.config.links import Link
from strait.kafka.reading import read_at_times, read_topic
from strait.model import TopicPartition
from strait.planning.history.load import WINDOW_SECONDS as LOAD_WINDOW_SECONDS
from strait.planning.history.load import Load, depends_on_load, loads_of
from strait.planning.history.overrun import WINDOW_SECONDS, Reports, lags
from strait.state.reader import StateReader
from strait.state.view import Place, StateView

_FRESH_SECONDS = 5.0  # for which a look at loads counts: one cycle decides twice
_SPAN_MS = 5_000  # in which every slot reports, several times


def earlier_reports(
    properties: Mapping[str, str], cluster: str, link: str, reports: Reports, now_ms: int, *, group: str
) -> Reports:
    """What slots said `WINDOW_SECONDS` ago, or at the first time since of which there are reports; nothing where no
    partition of the group lags, so that nothing can be lost.

    Args:
        reports: the present ones.

    Raises:
        ClusterUnavailable, NotAuthorized
    """
    if not lags(group, reports):
        return {}
    return _reports_since(properties, cluster, link, now_ms - WINDOW_SECONDS * 1000)


class LoadMonitor:
    """The loads of a link's partitions, looked at anew after some seconds.

    Args:
        reader: gives the reader that follows the link's reports.
    """

    def __init__(self, link: Link, properties: Mapping[str, str], name: str, reader: Callable[[], StateReader]) -> None:
        self._link = link
        self._properties = properties
        self._name = name
        self._reader = reader
        self._loads: Mapping[TopicPartition, Load] = {}
        self._due_at = 0.0

    def now(self) -> Mapping[TopicPartition, Load]:
        """What was reported just now; nothing where no decision of the link depends on it.

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
        now_ms = time.time_ns() // 1_000_000
        since_ms = now_ms - round(LOAD_WINDOW_SECONDS * 1000)
        earlier = _reports_since(self._properties, self._link.destination, self._name, since_ms)
        return loads_of(earlier, reader.reports, now_ms)


def reports_at(
    properties: Mapping[str, str], cluster: str, link: str, times_ms: Iterable[int]
) -> Iterator[tuple[int, Reports]]:
    """Each time with what the slots that ran then said.

    Raises:
        ClusterUnavailable, NotAuthorized
    """
    topic = naming.reports_topic(link)
    for at_ms, messages in read_at_times(properties, cluster, topic, times_ms, _SPAN_MS):
        view = StateView(link)
        for message in messages:
            view.apply("reports", message.key(), message.value(), Place(topic, 0, message.offset()))
        yield at_ms, view.reports


def _reports_since(properties: Mapping[str, str], cluster: str, link: str, since_ms: int) -> Reports:
    """The first reports of every slot that were written at that time or later."""
    topic, view = naming.reports_topic(link), StateView(link)
    ends_ms = None
    for message in read_topic(properties, cluster, topic, since_ms=since_ms):
        _, written_ms = message.timestamp()
        ends_ms = written_ms + _SPAN_MS if ends_ms is None else ends_ms
        if written_ms > ends_ms:
            break
        view.apply("reports", message.key(), message.value(), Place(topic, 0, message.offset()))
    return view.reports
