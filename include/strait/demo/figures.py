"""What the demo has copied: by the reports of its links' slots, and by those about its consumer groups."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from strait.demo.folder import LINKS, TOPICS
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus, status_of
from strait.state.reader import StateReader


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """One topic of one link now.

    Attributes:
        lag_records: of the partitions that do not wait.
        waiting: reason -> number of partitions that wait for it.
        starting: partitions whose position is not known yet.
        latency_ms_p50: of the slots that copy it, over the last minute; None: none measured.
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
    """The consumer groups of one link: how many have offsets in its topics, and how many of them would continue exactly
    where they are."""

    link: str
    groups: int
    in_sync: int


class Figures:
    """Open it once, read it as often as needed."""

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
        """Every topic of the plans in force, by link and name; none of a link before its first plan."""
        found = []
        for link, state in self._states.items():
            state.catch_up()
            for group, plan in sorted(state.plans.items()):
                status = status_of(link, group, plan, state.reports, time.time_ns() // 1_000_000)
                topics: dict[str, list[PartitionStatus]] = {}
                for row in status.partitions:
                    topics.setdefault(row.topic, []).append(row)
                found += [_figures(link, rows, status.slots) for _, rows in sorted(topics.items())]
        return found

    def groups(self) -> list[GroupFigures]:
        """As of the last `read`; none of a link whose groups nobody has looked at yet."""
        looks = ((link, state.group_sync) for link, state in self._states.items())
        return [GroupFigures(link, look.groups, look.in_sync) for link, look in looks if look is not None]


def caught_up(topics: Sequence[TopicFigures], *, within_records: int) -> bool:
    """Whether every topic of every link has copies, lags by so few records at most, and has a latency to show."""
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
    """Of the slowest slot."""
    return max((one for one in latencies if one is not None), default=None)
