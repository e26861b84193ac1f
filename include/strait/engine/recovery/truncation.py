"""Handles positions that the source no longer holds: records the loss and applies the topic's policy. Loss is never
silent."""

from typing import Literal, NamedTuple

from strait.engine.loss_ledger import Action, LossLedger
from strait.engine.partition.partition import Partition
from strait.errors import ProtocolError
from strait.net import error_policy
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.offsets import EARLIEST, LATEST, offset_at
from strait.net.tasks import RequestLost
from strait.reasons import Reason

_LOOK_SECONDS = 1.0
OnLoss = Literal["halt", "continue", "restart"]


class Outside(NamedTuple):
    """Source offsets [``lost_from``, ``lost_to``) cannot be copied, or were copied and no longer exist. Replication
    resumes at ``position``; None: it halts."""

    cause: Reason
    lost_from: int
    lost_to: int
    detail: str
    position: int | None

    def action(self) -> Action:
        if self.position is None:
            return "halted"
        return "restarted" if self.position < self.lost_from else "continued"


def judge(position: int, log_start: int, end: int, on_loss: OnLoss) -> Outside | None:
    """Return the loss that a position outside [``log_start``, ``end``] implies; None if the position is now inside."""
    if position < log_start:
        detail = f"source offsets {position} to {log_start - 1} were deleted before they were replicated"
        on = None if on_loss == "halt" else log_start
        return Outside(Reason.SOURCE_DATA_LOST, position, log_start, detail, on)
    if position > end:
        detail = f"source log end offset {end} is below {position}, the next offset to replicate"
        goes_on = {"halt": None, "continue": end, "restart": log_start}[on_loss]
        return Outside(Reason.SOURCE_TRUNCATED, end, position, detail, goes_on)
    return None


class Truncation:
    """Handles partitions whose position the source rejects."""

    def __init__(self, loop: Loop, source: ClusterClient, losses: LossLedger) -> None:
        self._loop = loop
        self._source = source
        self._loss_ledger = losses

    async def look_into(self, partition: Partition) -> None:
        """Handle a cursor offset that the source rejects: query the start and end of its log and act on them."""
        until = self._loop.now + _LOOK_SECONDS
        partition.block(Reason.SOURCE_LEADERLESS, "looking up the log start and end offsets", until)
        ticket, refused = partition.ticket(), partition.cursor.offset
        node = self._source.leader(*partition.source_place).node
        channel = self._source.channel(node) if node >= 0 else None
        if channel is None:
            return
        key = partition.source_place
        try:
            error, log_start = await offset_at(self._loop, channel, key, EARLIEST)
            if not error:
                error, end = await offset_at(self._loop, channel, key, LATEST)
        except (RequestLost, ProtocolError):
            self._source.refresh((partition.source_topic,))
            return
        if error:
            self._source.refresh((partition.source_topic,))
        elif ticket.is_current and partition.cursor.offset == refused:
            self._act(partition, judge(refused, log_start, end, partition.policy.on_loss))

    def diverged(self, partition: Partition, end: int) -> None:
        """Handle a divergence: the source's leader reports that the log as we know it ended at ``end``, so another
        leader lost records that were copied.

        If ``end`` is not before the position, the leader has other records there, up to its own end: at least the last
        copied one is lost, and how many before it are is not known.
        """
        position = partition.cursor.offset
        outside = judge(position, 0, min(end, max(0, position - 1)), partition.policy.on_loss)
        if outside is not None and end >= position:
            detail = f"the source's log has other records before offset {position}; how many of those that were copied are lost is not known"
            outside = outside._replace(detail=detail)
        self._act(partition, outside)

    def _act(self, partition: Partition, outside: Outside | None) -> None:
        if outside is None:
            partition.cursor.forget_epoch()  # an epoch that the log never had is rejected like an unknown offset
            partition.unblock()
            return
        lost = outside.lost_from, outside.lost_to
        self._loss_ledger.source_lost(partition, outside.cause, lost, outside.action(), outside.detail)
        if outside.position is None:
            wait = error_policy.wait_for(outside.cause)[0]
            partition.block(outside.cause, outside.detail, self._loop.now + wait)
        else:
            partition.jump(outside.position)
