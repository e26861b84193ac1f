"""Confirms that no other instance has written, before a partition sends batches of old records.

A broker forgets a producer whose newest record is old, so the sequence number of such a batch protects nothing: the
destination's log is queried first (ADR 12).
"""

from collections import defaultdict
from collections.abc import Callable
from functools import partial

from strait.engine.partition.partition import Partition, Superseded, Ticket
from strait.engine.partition.position import Phase
from strait.engine.partition.send_queue import OutBatch
from strait.engine.recovery import contention
from strait.engine.recovery.decision import Found, LogState
from strait.engine.recovery.log_looks import LogLooks
from strait.engine.recovery.next_record import NextRecord
from strait.engine.recovery.producer_state import Refusal
from strait.engine.recovery.unresolved import Unresolved
from strait.errors import ProtocolError
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.tasks import RequestLost, run
from strait.state.offset_map import wire_sequence
from strait.waiting import unix_ms


class Confirmation:
    """The partitions of a slot whose next batches are old, and the queries of their logs."""

    def __init__(
        self,
        loop: Loop,
        destination: ClusterClient,
        looks: LogLooks,
        next_record: NextRecord,
        *,
        schedule: Callable[[Partition], None],
        look_up: Callable[[Partition], None],
    ) -> None:
        """``schedule``: gives a partition whose log is as it was its turn to send. ``look_up``: resets the position of any
        other."""
        self._loop = loop
        self._destination = destination
        self._looks = looks
        self._next_record = next_record
        self._schedule = schedule
        self._look_up = look_up
        self._late: set[Partition] = set()
        self._confirming: set[Ticket] = set()

    def forget(self, partition: Partition) -> None:
        self._late.discard(partition)

    def note_age(self, partition: Partition, batch: OutBatch) -> None:
        """Note the age of a queued batch. If its records are old, check for another instance that sends them before
        this one does."""
        is_old = contention.note(partition, batch, unix_ms())
        if is_old and contention.is_stale(partition, self._loop.now) and partition.ticket() not in self._confirming:
            self._late.add(partition)

    def looks_first(self, partition: Partition) -> bool:
        """Return whether the partition, whose turn to send has come, must be looked up first."""
        waits = partition in self._late or partition.ticket() in self._confirming
        if waits or not contention.is_late(partition, self._loop.now):
            return waits
        partition.position.late_looks += 1
        self._late.add(partition)
        return True

    def may_continue(self, partition: Partition) -> bool:
        """Return whether the partition may send immediately if its lookup finds the log as it was."""
        return contention.may_continue(partition, self._loop.now)

    def step(self) -> None:
        """Query the logs of partitions that have old batches to send, if too little is known of them. The batches
        are kept while the log is as it was: a source that takes longer to return them than a lookup remains valid would
        otherwise be read again and again."""
        if not self._late:
            return
        by_node: dict[int, list[Ticket]] = defaultdict(list)
        for partition in self._late:
            if partition.position.phase is not Phase.REPLICATING:
                continue
            by_node[partition.queue.node].append(partition.ticket())
        self._late.clear()
        for node, tickets in by_node.items():
            channel = self._destination.prompt_channel(node)
            if channel is None:
                for ticket in tickets:
                    self._look_up(ticket.partition)
            else:
                self._confirming.update(tickets)
                run(self._confirm(node, channel, tickets))

    async def _confirm(self, node: int, channel: Channel, tickets: list[Ticket]) -> None:
        try:
            states, look = await self._looks.look(node, channel, tickets)
        except (RequestLost, ProtocolError):
            states, look = {}, contention.Look(self._loop.now, self._loop.now)
        for ticket in tickets:
            state = states.get((ticket.partition.destination, ticket.partition.number))
            run(self._confirm_one(ticket, channel, state, look))

    async def _confirm_one(
        self, ticket: Ticket, channel: Channel, state: LogState | Refusal | None, look: contention.Look
    ) -> None:
        partition = ticket.partition
        try:
            ticket.check()
            same = isinstance(state, LogState) and await self._is_as_it_was(ticket, channel, state)
            ticket.check()
            if not same:
                self._look_up(partition)
            elif wait := contention.seconds_to_watch(partition, look):
                self._loop.call_later(wait, partial(self._late_again, ticket))
                return
            else:
                self._schedule(partition)
        except Superseded:
            pass
        except (Unresolved, RequestLost):
            self._look_up(partition)
        self._confirming.discard(ticket)

    async def _is_as_it_was(self, ticket: Ticket, channel: Channel, state: LogState) -> bool:
        """Return whether the destination's log holds no record of the link after the last one that was acknowledged or
        found, and nothing that was sent may still arrive."""
        partition = ticket.partition
        position = partition.position
        if partition.queue.unanswered_end >= 0 or partition.queue.in_flight:
            return False
        if state.end_before == state.end == position.expected_offset:
            return state.last_sequence in (None, wire_sequence(position.acked_sequence - 1))
        found = await self._next_record.find(ticket, channel, state)
        return isinstance(found, Found) and found.sequence == position.acked_sequence and found.lost is None

    def _late_again(self, ticket: Ticket) -> None:
        self._confirming.discard(ticket)
        if ticket.is_current:
            self._late.add(ticket.partition)
