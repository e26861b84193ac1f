"""The same values under the names that dashboards of kafka_exporter and of MirrorMaker 2 (Strimzi's JMX rules) query.
Always by partition, as theirs are.

A link is represented as a consumer group of its source, with the link's name.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric

from strait.exporter.observation import Observation
from strait.planning.status.rows import PartitionStatus

Rows = Sequence[tuple[Observation, Sequence[PartitionStatus]]]
_MM2 = "kafka_connect_mirror_mirrorsourceconnector_"


class Name(NamedTuple):
    """One metric; ``value``: None if it is unknown."""

    name: str
    help: str
    labels: tuple[str, ...]
    place: Callable[[Observation, PartitionStatus], tuple[str, ...]]
    value: Callable[[PartitionStatus], float | None]


def _known(value: int) -> float | None:
    return None if value < 0 else float(value)


def _source(_: Observation, row: PartitionStatus) -> tuple[str, ...]:
    return row.topic, str(row.partition)


def _group(seen: Observation, row: PartitionStatus) -> tuple[str, ...]:
    return seen.link, row.topic, str(row.partition)


def _mirror(seen: Observation, row: PartitionStatus) -> tuple[str, ...]:
    return seen.source, seen.destination, row.destination, str(row.partition)


_TOPIC, _GROUP = ("topic", "partition"), ("consumergroup", "topic", "partition")
_MIRROR = ("source", "target", "topic", "partition")

NAMES = (
    Name("kafka_topic_partition_current_offset", "End of the source.", _TOPIC, _source, lambda row: _known(row.end)),
    Name(
        "kafka_topic_partition_oldest_offset",
        "Log start of the source.",
        _TOPIC,
        _source,
        lambda row: _known(row.log_start),
    ),
    Name(
        "kafka_consumergroup_current_offset",
        "Next source offset to replicate.",
        _GROUP,
        _group,
        lambda row: _known(row.position),
    ),
    Name(
        "kafka_consumergroup_lag",
        "Records of the source not replicated yet.",
        _GROUP,
        _group,
        lambda row: _known(row.lag_records),
    ),
    Name(
        f"{_MM2}record_count",
        "Records that the link has written.",
        _MIRROR,
        _mirror,
        lambda row: _known(row.written),
    ),
    Name(
        f"{_MM2}record_age_ms",
        "Age of the newest replicated record where newer ones wait.",
        _MIRROR,
        _mirror,
        lambda row: None if row.lag_seconds < 0 else row.lag_seconds * 1000,
    ),
)


def conventional(found: Rows) -> Iterator[Metric]:
    """Yield the metrics of these partitions. If two links replicate a topic, its source offsets are those that the last
    link has seen."""
    for name in NAMES:
        samples = {
            name.place(seen, row): value
            for seen, rows in found
            for row in rows
            if row.partition is not None and (value := name.value(row)) is not None
        }
        metric = GaugeMetricFamily(name.name, name.help, labels=name.labels)
        for labels, value in samples.items():
            metric.add_metric(labels, value)
        yield metric
