"""What a partition does and why, for the reports topic: derived from its parts."""

from typing import Literal

from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.state.schema import PartitionReport

State = Literal["starting", "copying", "caught_up", "waiting"]


def state_of(partition: Partition) -> State:
    if partition.reason is not None:
        return "waiting"
    if partition.position.phase is not Phase.REPLICATING or partition.cursor.end < 0:
        return "starting"
    return "copying" if _lag(partition) else "caught_up"


def report_of(partition: Partition, now_ms: int) -> PartitionReport:
    cursor, totals, lag = partition.cursor, partition.totals, _lag(partition)
    newest = totals.last_timestamp_ms
    behind = max(0.0, (now_ms - newest) / 1000) if lag and newest >= 0 else 0.0
    return PartitionReport.model_construct(
        topic=partition.topic,
        partition=partition.number,
        state=state_of(partition),
        reason=partition.reason.value if partition.reason else None,
        detail=partition.detail,
        position=partition.acked_offset,
        end=cursor.end,
        lag_records=lag,
        lag_seconds=round(behind, 3),
        records=totals.records,
        bytes=totals.bytes,
        recopied=partition.position.recopied,
        left_out=cursor.left_out,
        log_start=cursor.log_start,
        written=partition.position.acked_sequence,
    )


def _lag(partition: Partition) -> int:
    at, end = partition.acked_offset, partition.cursor.end
    return max(0, end - at) if at >= 0 and end >= 0 else 0
