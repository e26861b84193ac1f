"""Queries the ends of the source's logs while a slot may not fetch, outside the hours of its task group.

Otherwise the lag would stay that of the end of the hours, and no loss by the source's retention would be foreseen.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from strait.engine.checkpointer import Rounds
from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.engine.throttle import Throttle
from strait.errors import ProtocolError
from strait.net import error_policy
from strait.net.cluster_client import ClusterClient
from strait.net.error_policy import Away
from strait.net.event_loop import Loop
from strait.net.offsets import EARLIEST, LATEST, ask_offsets, offsets_of
from strait.net.tasks import RequestLost, quiet_channel, run
from strait.reasons import Reason
from strait.wire.fetch import READ_COMMITTED, READ_UNCOMMITTED

ROUND_SECONDS = 10.0
_STEP_SECONDS = 1.0
_AWAY = frozenset(error_policy.away(Reason.SOURCE_UNREACHABLE, why) for why in Away)
"""Reasons of partitions whose source did not answer."""


class SourceEnds:
    """The lookups of one slot. Each partition has one turn in `ROUND_SECONDS`.

    Args:
        held_back: called with a partition that has records after an open transaction.
    """

    def __init__(
        self, loop: Loop, source: ClusterClient, budgets: Throttle, held_back: Callable[[Partition], None]
    ) -> None:
        self._loop = loop
        self._source = source
        self._budgets = budgets
        self._held_back = held_back
        self._rounds = Rounds(ROUND_SECONDS, loop.now)
        self._step_at = loop.now

    def step(self, partitions: Callable[[], Sequence[Partition]]) -> None:
        """Start the lookups that are due."""
        if self._loop.now < self._step_at:
            return
        self._step_at = self._loop.now + _STEP_SECONDS
        if not self._budgets.closed(self._loop.now):
            return
        by_leader: dict[int, list[Partition]] = defaultdict(list)
        for partition in self._rounds.due(self._loop.now, partitions):
            if partition.position.phase is Phase.REPLICATING:
                by_leader[self._source.leader(*partition.source_place).node].append(partition)
        for node, led in by_leader.items():
            if node >= 0:
                run(self._look(node, led))

    async def _look(self, node: int, partitions: Sequence[Partition]) -> None:
        """Apply the ends of these partitions. The first query is that for the log's start, so that it is never beyond the
        others."""
        tickets = [partition.ticket() for partition in partitions]
        epochs = {one.source_place: self._source.leader(*one.source_place).epoch for one in partitions}
        try:
            channel = await quiet_channel(self._loop, self._source, node)
            found = [
                offsets_of(await ask_offsets(self._loop, channel, epochs, at, epochs, isolation))
                for at, isolation in (
                    (EARLIEST, READ_UNCOMMITTED),
                    (LATEST, READ_COMMITTED),
                    (LATEST, READ_UNCOMMITTED),
                )
            ]
        except (RequestLost, ProtocolError) as error:
            reason = error_policy.away(Reason.SOURCE_UNREACHABLE, self._source.why_away(node))
            for ticket in tickets:
                if ticket.is_current and ticket.partition.reason is None:
                    ticket.partition.show(reason, str(error))
            return  # the next round asks again
        for ticket in tickets:
            partition = ticket.partition
            answers = [of_all.get(partition.source_place, (-1, -1)) for of_all in found]
            if not ticket.is_current or any(error or offset < 0 for error, offset in answers):
                continue
            log_start, end, high_watermark = (offset for _, offset in answers)
            if partition.reason in _AWAY:
                partition.clear()
            partition.heard(end, high_watermark, log_start)
            if high_watermark > end:
                self._held_back(partition)
