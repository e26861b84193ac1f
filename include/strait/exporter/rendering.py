"""Observations as Prometheus metrics."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import monotonic

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from strait.exporter.conventional import conventional
from strait.exporter.families import places
from strait.exporter.metrics import LINKS
from strait.exporter.observation import Observation
from strait.exporter.place_metrics import PLACES
from strait.planning.status.rows import PartitionStatus

_FAMILIES = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily, "histogram": HistogramMetricFamily}

UP = "strait_up", "Whether the link could be looked at: its destination answers, and its state can be read."
AGE = "strait_observation_age_seconds", "Since the link was looked at."
LEFT_OUT = (
    "strait_series_left_out",
    "Topics or partitions without metrics of their own, since there are more than the limit.",
)


@dataclass(frozen=True, slots=True)
class Options:
    """Exported metrics besides the links' own.

    Attributes:
        by_partition: metrics of each partition instead of each topic.
        most: maximum number of topics or partitions of each link; those with the highest lag come first.
        conventional: also under the names of other tools.
    """

    by_partition: bool = False
    most: int = 5_000
    conventional: bool = False


class LinkCollector(Collector):
    """Collects the latest observations at the time of each scrape.

    Args:
        observe: returns every link's newest observation.
    """

    def __init__(self, observe: Callable[[], Iterable[Observation]], options: Options | None = None) -> None:
        self._observe = observe
        self._options = options or Options()

    def collect(self) -> Iterator[Metric]:
        seen = sorted(self._observe(), key=lambda one: one.link)
        now, healthy = monotonic(), [one for one in seen if not one.error]
        yield _gauge(*UP, ((one.link, float(not one.error)) for one in seen))
        yield _gauge(*AGE, ((one.link, max(0.0, now - one.at)) for one in seen))
        for family in LINKS:
            metric = _FAMILIES[family.kind](family.name, family.help, labels=("link", *family.labels))
            for one in healthy:
                for labels, value in family.values(one):
                    named = (one.link, *labels)
                    if family.kind == "histogram":
                        metric.add_metric(named, value.buckets, value.sum)
                    else:
                        metric.add_metric(named, value)
            yield metric
        chosen = {one.link: self._chosen(one) for one in healthy}
        yield _gauge(*LEFT_OUT, ((link, float(left_out)) for link, (_, left_out) in chosen.items()))
        labels = ("link", "group", "topic", *(("partition",) if self._options.by_partition else ()))
        for place in PLACES:
            metric = _FAMILIES[place.kind](place.name, place.help, labels=labels)
            for link, (found, _) in chosen.items():
                for where, rows in found:
                    if (value := place.value(rows)) is not None:
                        metric.add_metric((link, *where), value)
            yield metric
        if self._options.conventional:
            yield from conventional(
                [(one, [row for _, rows in chosen[one.link][0] for row in rows]) for one in healthy]
            )

    def _chosen(self, seen: Observation) -> tuple[list[tuple[Sequence[str], list[PartitionStatus]]], int]:
        """Return (task group, topic, …) -> its rows, and how many exceed the limit."""
        found: list[tuple[Sequence[str], list[PartitionStatus]]] = [
            ((status.group, *where), rows)
            for status in seen.statuses
            for where, rows in places(status, by_partition=self._options.by_partition)
        ]
        left_out = len(found) - self._options.most
        if left_out <= 0:
            return found, 0
        found.sort(key=lambda one: (-sum(max(0, row.lag_records) for row in one[1]), one[0]))
        return found[: self._options.most], left_out


def registry_of(observe: Callable[[], Iterable[Observation]], options: Options | None = None) -> CollectorRegistry:
    """Return a registry for any server of metrics: `prometheus_client.generate_latest` renders it."""
    registry = CollectorRegistry()
    registry.register(LinkCollector(observe, options))
    return registry


def _gauge(name: str, text: str, values: Iterable[tuple[str, float]]) -> GaugeMetricFamily:
    metric = GaugeMetricFamily(name, text, labels=("link",))
    for link, value in values:
        metric.add_metric((link,), value)
    return metric
