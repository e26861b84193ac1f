"""The source does not hold the position any more: what was lost, and how the topic's policy goes on. Loss is never
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
    """Source offsets [``lost_from``, ``lost_to``) cannot be copied, or were copied and are no more. Copying goes on at
    ``position``; None: it halts."""

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
    """What a position outside of [``log_start``, ``end``] means; None: it is inside, the broker has moved on."""
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
    """Looks into partitions whose position the source refuses."""

    def __init__(self, loop: Loop, source: ClusterClient, losses: LossLedger) -> None:
        self._loop = loop
        self._source = source
        self._loss_ledger = losses

    async def look_into(self, partition: Partition) -> None:
        """The source refuses the cursor's offset: ask for the ends of its log and act on them."""
        until = self._loop.now + _LOOK_SECONDS
        partition.block(Reason.SOURCE_LEADERLESS, "looking up the log start and end offsets", until)
        ticket, refused = partition.ticket(), partition.cursor.offset
        node = self._source.leader(partition.topic, partition.number).node
        channel = self._source.channel(node) if node >= 0 else None
        if channel is None:
            return
        key = partition.topic, partition.number
        try:
            error, log_start = await offset_at(self._loop, channel, key, EARLIEST)
            if not error:
                error, end = await offset_at(self._loop, channel, key, LATEST)
        except (RequestLost, ProtocolError):
            self._source.refresh((partition.topic,))
            return
        if error:
            self._source.refresh((partition.topic,))
        elif ticket.is_current and partition.cursor.offset == refused:
            self._act(partition, judge(refused, log_start, end, partition.policy.on_loss))

    def diverged(self, partition: Partition, end: int) -> None:
        """The source's leader says that its log, as we know it, ended at ``end``: another leader lost what we
        copied."""
        self._act(partition, judge(partition.cursor.offset, 0, end, partition.policy.on_loss))

    def _act(self, partition: Partition, outside: Outside | None) -> None:
        if outside is None:
            partition.cursor.forget_epoch()  # an epoch that the log never had is refused like an offset that it has not
            partition.unblock()
            return
        lost = outside.lost_from, outside.lost_to
        self._loss_ledger.source_lost(partition, outside.cause, lost, outside.action(), outside.detail)
        if outside.position is None:
            wait = error_policy.wait_for(outside.cause)[0]
            partition.block(outside.cause, outside.detail, self._loop.now + wait)
        else:
            partition.jump(outside.position)
