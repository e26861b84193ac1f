"""A link's figures as gauges of Airflow's own metrics, wherever those are sent. Without `statsd_on` or OTel: nowhere.

Tags tell links and topics apart. Plain StatsD drops tags, so use its DogStatsD or Influx form, or OpenTelemetry.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strait.planning.metrics import TopicMetrics
    from strait.planning.status import Status


def send(status: "Status", topics: "Sequence[TopicMetrics]") -> None:
    """One gauge for each figure."""
    from airflow.sdk.observability import stats

    group = {"link": status.link, "group": status.group}
    stats.gauge("strait.slots_silent", sum(slot.silent for slot in status.slots), tags=group)
    for topic in topics:
        tags = {**group, "topic": topic.topic}
        stats.gauge("strait.records", topic.records, tags=tags)
        stats.gauge("strait.records_per_second", topic.records_per_second, tags=tags)
        stats.gauge("strait.lag_records", topic.lag_records, tags=tags)
        stats.gauge("strait.lag_seconds", topic.lag_seconds, tags=tags)
        for reason, partitions in topic.waiting.items():
            stats.gauge("strait.waiting_partitions", partitions, tags={**tags, "reason": reason})
