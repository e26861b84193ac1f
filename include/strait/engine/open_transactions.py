"""Finds the open transactions of the source that hold records back, and their producers.

A broker serves records up to the last stable offset, so a transaction that stays open holds back its own records and
all after them. Most last for milliseconds; one that lasts longer is looked up.
"""

import contextlib
from collections import defaultdict
from collections.abc import Collection, Mapping

from strait.engine.partition.cursor import OpenTransaction
from strait.engine.partition.partition import Partition
from strait.errors import ProtocolError
from strait.net import transactions
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.tasks import RequestLost, quiet_channel, run
from strait.net.transactions import Coordinated, Holder
from strait.pieces import pieces
from strait.text import utc
from strait.waiting import unix_ms

REASON_SECONDS = 10.0
"""A transaction that is open for longer is the reason why its partition waits."""
STEP_SECONDS = 1.0
LOOK_SECONDS = 60.0
"""Time between two lookups of the same transaction, which may hang by then."""
AT_ONCE = 200
"""Number of partitions, or producers, in one request."""


class OpenTransactions:
    """The open transactions of one slot. Only partitions with records after an open transaction are checked."""

    def __init__(self, loop: Loop, source: ClusterClient) -> None:
        self._loop = loop
        self._source = source
        self._held: set[Partition] = set()
        self._step_at = 0.0
        self._looking = False

    def note(self, partition: Partition) -> None:
        """Record that a transaction holds back records of this partition, as the source's leader reports."""
        if partition.cursor.transaction is None:
            partition.held_back(OpenTransaction(self._loop.now, unix_ms()))
            self._held.add(partition)

    def step(self) -> None:
        """Show the transactions that have been open for REASON_SECONDS, and start a lookup of their producers."""
        now = self._loop.now
        if not self._held or now < self._step_at:
            return
        self._step_at = now + STEP_SECONDS
        due = []
        for partition in tuple(self._held):
            transaction = partition.cursor.transaction
            if transaction is None or partition.retired:
                self._held.discard(partition)
            elif now - transaction.since >= REASON_SECONDS:
                if not transaction.is_reason:
                    transaction.is_reason = True
                    transaction.detail = f"from offset {partition.cursor.end:,}; its producer is being looked up"
                    partition.held_back(transaction)
                if now >= transaction.look_at:
                    due.append((partition, transaction))
        if due and not self._looking:
            self._looking = True
            run(self._look(due))

    async def _look(self, due: Collection[tuple[Partition, OpenTransaction]]) -> None:
        try:
            await self._look_up(due)
        finally:
            self._looking = False

    async def _look_up(self, due: Collection[tuple[Partition, OpenTransaction]]) -> None:
        holders: dict[Partition, Holder | str] = {}
        by_leader: dict[int, list[Partition]] = defaultdict(list)
        for partition, _ in due:
            by_leader[self._source.leader(*partition.source_place).node].append(partition)
        for node, partitions in by_leader.items():
            for piece in pieces(partitions, AT_ONCE):
                holders |= await self._holders(node, piece)
        known = await self._coordinated({one.producer_id for one in holders.values() if isinstance(one, Holder)})
        for partition, transaction in due:
            transaction.look_at = self._loop.now + LOOK_SECONDS
            holder, place = holders[partition], partition.source_place
            transaction.detail = describe(place, partition.cursor.end, holder, known)
            found = known.get(holder.producer_id) if isinstance(holder, Holder) else None
            if found is not None and place in found.partitions:
                transaction.since_ms = min(transaction.since_ms, found.started_ms)
            if partition.cursor.transaction is transaction:
                partition.held_back(transaction)

    async def _holders(self, node: int, partitions: Collection[Partition]) -> dict[Partition, Holder | str]:
        """Return the transaction's producer for each partition, or why it is unknown."""
        try:
            channel = await quiet_channel(self._loop, self._source, node)
            found = await transactions.holders(self._loop, channel, {one.source_place for one in partitions})
        except (RequestLost, ProtocolError) as error:
            return dict.fromkeys(partitions, str(error))
        return {one: found.get(one.source_place, "its leader does not describe it") for one in partitions}

    async def _coordinated(self, producer_ids: Collection[int]) -> dict[int, Coordinated]:
        """Return the transactions of these producers, as far as the source's brokers respond: the producers of one that
        does not remain unknown."""
        known: dict[int, Coordinated] = {}
        for node in self._source.nodes if producer_ids else ():
            with contextlib.suppress(RequestLost, ProtocolError):
                channel = await quiet_channel(self._loop, self._source, node)
                for piece in pieces(sorted(producer_ids), AT_ONCE):
                    known |= await transactions.coordinated(self._loop, channel, piece)
        return known


def describe(place: tuple[str, int], end: int, holder: Holder | str, known: Mapping[int, Coordinated]) -> str:
    """Describe the transaction's producer, and whether the transaction hangs. ``end``: the partition's last stable
    offset."""
    if isinstance(holder, str):
        return f"from offset {end:,}; its producer is unknown: {holder}"
    whose = f"from offset {holder.offset:,} by producer ID {holder.producer_id}"
    found = known.get(holder.producer_id)
    if found is None:
        return f"{whose}; its transactional ID is unknown: it has expired, or needs DESCRIBE on the transactional ID"
    whose += f", transactional ID {found.transactional_id}"
    if place in found.partitions:
        return f"{whose}, since {utc(found.started_ms)} UTC"
    return f"{whose}; it hangs: its coordinator has no open transaction of it in this partition"
