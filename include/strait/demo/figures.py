"""What the demo has copied: counted on both clusters, with lag and latency as the slots report them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from strait.demo.folder import DESTINATION, LINK, SOURCE
from strait.kafka.admin import Admin
from strait.model import TopicPartition
from strait.state.reader import StateReader
from strait.state.schema import Report


@dataclass(frozen=True, slots=True)
class TopicFigures:
    """One topic now. Latencies are those of the slots that copy it, over the last minute; None: none measured."""

    topic: str
    partitions: int
    source_records: int
    copied_records: int
    latency_ms_p50: float | None
    latency_ms_p99: float | None

    @property
    def lag_records(self) -> int:
        """Records on the source that are not on the destination yet."""
        return max(0, self.source_records - self.copied_records)


class Figures:
    """Open it once, read it as often as needed."""

    def __init__(self, clusters: Mapping[str, str]) -> None:
        """``clusters``: name -> bootstrap address."""
        self._source = Admin({"bootstrap.servers": clusters[SOURCE]}, SOURCE)
        self._destination = Admin({"bootstrap.servers": clusters[DESTINATION]}, DESTINATION)
        self._state = StateReader(
            {"bootstrap.servers": clusters[DESTINATION]}, DESTINATION, LINK, follow=("plan", "reports")
        )

    def __enter__(self) -> "Figures":
        return self

    def __exit__(self, *_: object) -> None:
        self._state.close()

    def read(self) -> list[TopicFigures]:
        """Every topic of the plan in force, by name; empty before the first plan."""
        self._state.catch_up()
        planned = [topic for plan in self._state.plans.values() for topic in plan.topics]
        source = self._records(self._source, {t.source: len(t.slots) for t in planned})
        copied = self._records(self._destination, {t.destination: len(t.slots) for t in planned})
        reports = [report for parts in self._state.reports.values() for report in parts]
        return [
            TopicFigures(
                topic.source,
                len(topic.slots),
                source[topic.source],
                copied[topic.destination],
                *_latency(reports, topic.source),
            )
            for topic in sorted(planned, key=lambda topic: topic.source)
        ]

    @staticmethod
    def _records(admin: Admin, partitions: Mapping[str, int]) -> dict[str, int]:
        every = [TopicPartition(topic, p) for topic, count in partitions.items() for p in range(count)]
        ends, starts = admin.offsets(every, "latest"), admin.offsets(every, "earliest")
        totals = dict.fromkeys(partitions, 0)
        for tp in every:
            totals[tp.topic] += ends[tp] - starts[tp]
        return totals


def caught_up(topics: Sequence[TopicFigures], *, within_records: int) -> bool:
    """Whether every topic has copies, lags by so few records at most, and has a latency to show."""
    return bool(topics) and all(
        t.copied_records > 0 and t.lag_records <= within_records and t.latency_ms_p50 is not None for t in topics
    )


def _latency(reports: Sequence[Report], topic: str) -> tuple[float | None, float | None]:
    """The slowest slot among those that copy the topic."""
    copying = [report for report in reports if any(partition.topic == topic for partition in report.partitions)]
    p50 = [report.latency_ms_p50 for report in copying if report.latency_ms_p50 is not None]
    p99 = [report.latency_ms_p99 for report in copying if report.latency_ms_p99 is not None]
    return max(p50, default=None), max(p99, default=None)
