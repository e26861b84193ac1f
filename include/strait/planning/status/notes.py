"""Notes on partitions that are replicated, about some of their records. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from strait.model import TopicPartition
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import Status
from strait.planning.topics.kept_less import recently_recorded
from strait.reasons import Reason
from strait.state.schema import Loss
from strait.text import plural, utc


def with_deleted(status: Status, losses: Iterable[Loss], now_ms: int) -> Status:
    """Return the status with the reason `destination_keeps_less` of each partition with such an entry of the last week,
    unless it has another reason.

    Args:
        losses: the loss log, or its newest entries.
    """
    recent = recently_recorded(losses, now_ms)
    if not recent:
        return status
    return replace(status, partitions=tuple(_with_deleted(row, recent) for row in status.partitions))


def _with_deleted(row: PartitionStatus, recent: Mapping[TopicPartition, Loss]) -> PartitionStatus:
    loss = None if row.partition is None else recent.get(TopicPartition(row.topic, row.partition))
    if loss is None or row.reason:
        return row
    seen = f"source offsets {loss.from_offset} to {loss.to_offset - 1}, seen {utc(loss.at_ms)}: {loss.detail}"
    return replace(row, reason=str(loss.cause), detail="; ".join(filter(None, (row.detail, seen))))


def with_quarantined(status: Status, quarantined: Mapping[TopicPartition, int], *, all_read: bool) -> Status:
    """Return the status with the number of unresolved records in quarantine per partition; not ``all_read``: there may be
    more.

    A partition without another reason gets the reason `quarantined`.
    """
    least = "" if all_read else "at least "
    return replace(status, partitions=tuple(_with_quarantined(row, quarantined, least) for row in status.partitions))


def _with_quarantined(row: PartitionStatus, quarantined: Mapping[TopicPartition, int], least: str) -> PartitionStatus:
    count = 0 if row.partition is None else quarantined.get(TopicPartition(row.topic, row.partition), 0)
    if not count:
        return row
    told = "; ".join(filter(None, (row.detail, f"{least}{plural(count, 'record')} in quarantine")))
    return replace(row, quarantined=count, detail=told, reason=row.reason or str(Reason.QUARANTINED))
