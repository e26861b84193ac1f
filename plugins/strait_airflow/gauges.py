"""Sends a link's metrics as gauges, together with Airflow's own metrics. Without `statsd_on` or OTel they are not sent.

Tags distinguish links and topics. Plain StatsD drops tags, so use its DogStatsD or Influx form, or OpenTelemetry.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from strait.text import plural
from strait.waiting import unix_ms

if TYPE_CHECKING:
    from strait.config.links import LinksFile
    from strait.planning.status.metrics import TopicMetrics
    from strait.planning.status.rows import PartitionStatus
    from strait.planning.status.status import Status
    from strait.state.group_sync_records import GroupSyncReport
    from strait.state.reader import StateReader
    from strait.state.report_records import Report


def connect() -> None:
    """Initialize the metrics of Airflow's task SDK in the triggerer; Airflow does so only in tasks."""
    from airflow.configuration import conf
    from airflow.sdk.observability import stats
    from airflow.sdk.observability.metrics import stats_utils

    stats.initialize(
        factory=stats_utils.get_stats_factory(), export_legacy_names=conf.getboolean("metrics", "legacy_names_on")
    )


class Measured(NamedTuple):
    """The metrics of a link.

    Attributes:
        lines: one per topic, then lines about partitions without a destination, slots that do not report, and consumer
            groups.
        statuses: one of each task group.
    """

    lines: list[str]
    statuses: "list[Status]"

    @property
    def partial(self) -> bool:
        """Whether a slot is silent, or does not know yet whether it can continue a partition, which may then need an operator
        without being among the needs. Known incidents are not over then; new ones are reported all the same."""
        return any(
            any(slot.silent for slot in status.slots) or any(map(_undetermined, status.partitions))
            for status in self.statuses
            if not status.stopped
        )


def _undetermined(row: "PartitionStatus") -> bool:
    """Return whether a slot has just got the partition, as after a restart, and would report an earlier halt only later."""
    from strait.reasons import Reason

    return row.state == "starting" or row.reason in (Reason.LOOKING_UP, Reason.TRANSFORM_STARTING)


def measure(
    file: "LinksFile", link: str, state: "StateReader", earlier: "Mapping[tuple[str, int], tuple[Report, ...]]"
) -> Measured:
    """Send a link's metrics as gauges, and return them.

    Args:
        state: follows `plan`, `map` and `reports`, and has caught up.
        earlier: its reports from some seconds ago.

    Raises:
        ClusterUnavailable, NotAuthorized: older reports cannot be read.
    """
    from strait.control.group_status import group_status
    from strait.planning.group_reports import summary
    from strait.planning.status.metrics import missing_destination_partitions, topic_metrics
    from strait.planning.status.words import word
    from strait.state.link_handle import ConfiguredLink
    from strait.text import listed, printable
    from strait_airflow.applications import starting

    lines: list[str] = []
    statuses: list[Status] = []
    of = ConfiguredLink.of(file, link)
    for group, found in sorted(state.plans.items()):
        status = group_status(of, group, state)
        statuses.append(status)
        topics = topic_metrics(status, state.runs, earlier, state.reports)
        missing = missing_destination_partitions(found)
        send(status, topics, missing)
        lines += [str(topic) for topic in topics]
        if missing:
            lines.append(
                f"group {group}: {plural(missing, 'partition waits', 'partitions wait')} for their destination"
            )
        if found.stopped:
            continue
        if silent := [slot.silence for slot in status.slots if slot.silent]:
            told = f"its application is {word('starting')}" if starting(file, link, group) else listed(silent)
            lines.append(f"group {group}: {told}")
    if state.group_sync is not None:
        now_ms = unix_ms()
        send_groups(state.group_sync, now_ms)
        lines.append(summary(state.group_sync, now_ms))
        lines += [printable(f"consumer group {one.group}: {one.why}") for one in state.group_sync.out_of_sync]
    return Measured(lines, statuses)


def send(status: "Status", topics: "Sequence[TopicMetrics]", missing: int) -> None:
    """Send one gauge per metric. ``missing``: number of partitions that the destination does not have, sent under
    Mirus' name for it."""
    from airflow.sdk.observability import stats

    group = {"link": status.link, "group": status.group}
    stats.gauge("strait.slots_silent", sum(slot.silent for slot in status.slots), tags=group)
    stats.gauge("strait.missing-dest-partitions-count", missing, tags=group)
    if status.latency_ms_p50 is not None and status.latency_ms_p99 is not None:
        stats.gauge("strait.latency_ms_p50", status.latency_ms_p50, tags=group)
        stats.gauge("strait.latency_ms_p99", status.latency_ms_p99, tags=group)
    beat = status.heartbeat
    if beat is not None and beat.heartbeat_age_ms is not None:
        stats.gauge("strait.heartbeat_age_seconds", beat.heartbeat_age_ms / 1000, tags=group)
    for topic in topics:
        tags = {**group, "topic": topic.topic}
        stats.gauge("strait.records", topic.records, tags=tags)
        _gauge("strait.records_per_second", topic.records_per_second, tags)
        _gauge("strait.lag_records", topic.lag_records, tags)
        _gauge("strait.lag_seconds", topic.lag_seconds, tags)
        _gauge("strait.held_back_records", topic.held_back_records, tags)
        _gauge("strait.held_back_seconds", topic.held_back_seconds, tags)
        _gauge("strait.seconds_to_loss", topic.seconds_to_loss, tags)
        for reason, partitions in topic.waiting.items():
            stats.gauge("strait.waiting_partitions", partitions, tags={**tags, "reason": reason})


def _gauge(name: str, value: float | None, tags: dict[str, str]) -> None:
    """Send a value that is known."""
    from airflow.sdk.observability import stats

    if value is not None:
        stats.gauge(name, value, tags=tags)


def send_groups(report: "GroupSyncReport", now_ms: int) -> None:
    """Send the state of the link's consumer groups on the destination as gauges."""
    from airflow.sdk.observability import stats

    link = {"link": report.link}
    stats.gauge("strait.consumer_groups", report.groups, tags=link)
    stats.gauge("strait.consumer_groups_in_sync", report.in_sync, tags=link)
    stats.gauge("strait.consumer_groups_rereads", report.rereads, tags=link)
    stats.gauge("strait.consumer_groups_age_seconds", max(0, now_ms - report.at_ms) / 1000, tags=link)
    for state, offsets in report.offsets.items():
        stats.gauge("strait.consumer_group_offsets", offsets, tags={**link, "state": state})
