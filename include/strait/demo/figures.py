"""Figures of the demo, from the reports of its links' slots and those about its consumer groups."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from strait.demo.folder import LINKS, TOPICS
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, status_of
from strait.state.reader import StateReader
from strait.waiting import unix_ms


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """Current figures of one topic of one link.

    Attributes:
        lag_records: sum over the partitions that do not wait.
        waiting: reason -> number of partitions that wait for it.
        starting: number of partitions whose position is still unknown.
        latency_ms_p50: maximum of the slots that copy it, over the last minute; None: none measured.
    """

    link: str
    topic: str
    partitions: int
    copied_records: int
    lag_records: int
    waiting: Mapping[str, int]
    starting: int
    latency_ms_p50: float | None
    latency_ms_p99: float | None


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """Consumer groups of one link: the number that have offsets in its topics, and the number of these that would
    continue exactly at their position."""

    link: str
    groups: int
    in_sync: int


class Figures:
    """Reads the figures. Open it once; read as often as needed."""

    def __init__(self, clusters: Mapping[str, str]) -> None:
        """``clusters``: name -> bootstrap address."""
        self._states = {
            link: StateReader(
                {"bootstrap.servers": clusters[destination]}, destination, link, follow=("plan", "reports")
            )
            for link, (_, destination) in LINKS.items()
        }

    def __enter__(self) -> "Figures":
        return self

    def __exit__(self, *_: object) -> None:
        for state in self._states.values():
            state.close()

    def read(self) -> list[TopicFigures]:
        """Return the figures of every topic of the current plans, by link and name; none for a link without a plan."""
        found = []
        for link, state in self._states.items():
            state.catch_up()
            for group, plan in sorted(state.plans.items()):
                status = status_of(link, group, plan, state.reports, unix_ms())
                topics: dict[str, list[PartitionStatus]] = {}
                for row in status.partitions:
                    topics.setdefault(row.topic, []).append(row)
                found += [_figures(link, rows, status.slots) for _, rows in sorted(topics.items())]
        return found

    def groups(self) -> list[GroupFigures]:
        """Return the figures as of the last `read`; none for a link without a recent report on its groups."""
        looks = ((link, state.group_sync) for link, state in self._states.items())
        return [GroupFigures(link, look.groups, look.in_sync) for link, look in looks if look is not None]


def caught_up(topics: Sequence[TopicFigures], *, within_records: int) -> bool:
    """Return whether every topic of every link has copied records, no starting partition, a lag of at most
    ``within_records``, and a measured latency."""
    wanted = {(link, topic) for link, several in TOPICS.items() for topic in several}
    return wanted <= {(t.link, t.topic) for t in topics} and all(
        t.copied_records > 0 and not t.starting and t.lag_records <= within_records and t.latency_ms_p50 is not None
        for t in topics
    )


def _figures(link: str, rows: Sequence[PartitionStatus], slots: Sequence[SlotStatus]) -> TopicFigures:
    waiting = Counter(row.reason for row in rows if row.state == "waiting")
    copying = [slots[row.slot] for row in rows if row.slot is not None]
    return TopicFigures(
        link=link,
        topic=rows[0].topic,
        partitions=len(rows),
        copied_records=sum(max(0, row.written) for row in rows),
        lag_records=sum(max(0, row.lag_records) for row in rows if row.state != "waiting"),
        waiting=dict(waiting),
        starting=sum(row.written < 0 for row in rows),
        latency_ms_p50=_longest(slot.latency_ms_p50 for slot in copying),
        latency_ms_p99=_longest(slot.latency_ms_p99 for slot in copying),
    )


def _longest(latencies: Iterable[float | None]) -> float | None:
    """Return the latency of the slowest slot, in ms; None if none was measured."""
    return max((one for one in latencies if one is not None), default=None)
