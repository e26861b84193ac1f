"""A partition's state and its reason, for the reports topic: derived from its parts."""

from typing import Literal

from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.reasons import Reason
from strait.state.report_records import PartitionReport

State = Literal["starting", "copying", "caught_up", "waiting"]


def state_of(partition: Partition) -> State:
    if partition.finished:  # even if the source has a problem: nothing more is needed from it
        return "caught_up"
    if partition.reason is not None:
        return "waiting"
    if partition.position.phase is not Phase.REPLICATING or partition.cursor.end < 0:
        return "starting"
    if not _lag(partition) and _waits_for_transaction(partition):
        return "waiting"
    return "copying" if _lag(partition) or partition.cursor.held_back else "caught_up"


def reason_of(partition: Partition) -> tuple[Reason | None, str]:
    """Return why it waits, with details; None if it does not."""
    if partition.finished:
        return Reason.FINISHED, f"copied up to source offset {partition.cursor.until}"
    transaction = partition.cursor.transaction
    if partition.reason is None and transaction is not None and state_of(partition) == "waiting":
        return Reason.OPEN_TRANSACTION, transaction.detail
    return partition.reason, partition.detail


def report_of(partition: Partition, now_ms: int) -> PartitionReport:
    cursor, totals, lag = partition.cursor, partition.totals, _lag(partition)
    newest = totals.last_timestamp_ms
    reason, detail = reason_of(partition)
    held_back = 0 if partition.finished else cursor.held_back
    behind = max(0.0, (now_ms - newest) / 1000) if lag and newest >= 0 else 0.0
    return PartitionReport.model_construct(
        topic=partition.topic,
        partition=partition.number,
        state=state_of(partition),
        reason=reason.value if reason else None,
        detail=detail,
        position=partition.acked_offset,
        end=max(cursor.copied_end, cursor.until) if partition.finished else cursor.copied_end,
        lag_records=lag,
        lag_seconds=round(behind, 3),
        records=totals.records,
        bytes=totals.bytes,
        recopied=partition.position.recopied,
        left_out=cursor.left_out,
        log_start=cursor.log_start,
        written=partition.position.acked_sequence,
        held_back_records=held_back,
        held_since_ms=-1 if cursor.transaction is None or not held_back else cursor.transaction.since_ms,
        at_ms=now_ms,
    )


def _lag(partition: Partition) -> int:
    at, end = partition.acked_offset, partition.cursor.copied_end
    return max(0, end - at) if at >= 0 and end >= 0 else 0


def _waits_for_transaction(partition: Partition) -> bool:
    transaction = partition.cursor.transaction
    return transaction is not None and transaction.is_reason
