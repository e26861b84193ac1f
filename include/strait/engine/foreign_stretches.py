"""Proves, once a minute, that only other producers have written to the destination log after the link's last record.

If other producers write to a destination topic and the link has nothing to copy, as in the idle direction of two links,
a position lookup would read all records written since the link's last one. A mark in the offset map avoids that (ADR
28). The proof reads no record: the link cannot have written a record that its source does not hold.

1. The destination's leader reports its log end offset, and that it does not know a later record of the link.
2. After that response, the source's leader reports its last stable offset.
3. This slot has fetched the source up to that offset and found nothing to copy.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from strait.engine.checkpointer import Rounds
from strait.engine.partition.partition import Partition, Ticket
from strait.engine.partition.position import Phase
from strait.engine.recovery.decision import LogState
from strait.engine.recovery.passed import PassedMarks
from strait.engine.recovery.producer_state import ask_log_states
from strait.errors import ProtocolError
from strait.net import offsets
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.tasks import RequestLost, quiet_channel, run
from strait.state.offset_map import wire_sequence
from strait.wire.fetch import READ_COMMITTED

ROUND_SECONDS = 60.0
LEAST_OFFSETS = 10
"""A mark that skips fewer offsets is not worth a record in the map."""
_STEP_SECONDS = 1.0


class _Proof(NamedTuple):
    """Record number ``sequence`` was not appended before destination offset ``offset``, if the source held nothing to
    copy before source offset ``source_end``."""

    ticket: Ticket
    sequence: int
    offset: int
    source_end: int = -1


class ForeignStretches:
    """The proofs of one slot. Each partition has one turn a minute."""

    def __init__(
        self, loop: Loop, source: ClusterClient, destination: ClusterClient, producer_id: int, marks: PassedMarks
    ) -> None:
        self._loop = loop
        self._source = source
        self._destination = destination
        self._producer_id = producer_id
        self._marks = marks
        self._rounds = Rounds(ROUND_SECONDS, loop.now)
        self._step_at = loop.now
        self._open: list[_Proof] = []

    def step(self, partitions: Callable[[], Sequence[Partition]]) -> None:
        """Complete the proofs that hold, and start those that are due."""
        if self._loop.now < self._step_at:
            return
        self._step_at = self._loop.now + _STEP_SECONDS
        self._open = [proof for proof in self._open if not self._is_settled(proof)]
        by_leader: dict[int, list[Partition]] = defaultdict(list)
        for partition in self._rounds.due(self._loop.now, partitions):
            if partition.policy.on_foreign == "expect" and _holds_all(partition):
                by_leader[partition.queue.node].append(partition)
        for node, led in by_leader.items():
            run(self._look(node, led))

    def _is_settled(self, proof: _Proof) -> bool:
        """Return whether the proof needs no further check: it holds, and its mark is written, or it never will."""
        partition = proof.ticket.partition
        if not proof.ticket.is_current or not _holds_all(partition) or partition.cursor.sequence != proof.sequence:
            return True  # there was a record to copy: a checkpoint confirms its position
        if partition.cursor.offset < proof.source_end:
            return False
        self._marks.mark(partition, proof.sequence, proof.offset, LEAST_OFFSETS)
        return True

    async def _look(self, node: int, partitions: Sequence[Partition]) -> None:
        try:
            proofs = await self._foreign(node, partitions)
            by_leader: dict[int, list[_Proof]] = defaultdict(list)
            for proof in proofs:
                partition = proof.ticket.partition
                by_leader[self._source.leader(*partition.source_place).node].append(proof)
            for leader, led in by_leader.items():
                self._open += await self._with_source_ends(leader, led)
        except (RequestLost, ProtocolError):
            return  # the next round asks again; if position lookups fail too, the partition shows that as its reason

    async def _foreign(self, node: int, partitions: Sequence[Partition]) -> list[_Proof]:
        """Return a proof for each partition without a later record of the link, as far as the destination's leader
        knows; its state of old records may have expired."""
        tickets = [(partition.ticket(), partition.position.acked_sequence) for partition in partitions]
        epochs = {
            (one.destination, one.number): self._destination.leader(one.destination, one.number).epoch
            for one in partitions
        }
        channel = await quiet_channel(self._loop, self._destination, node)
        states = await ask_log_states(self._loop, channel, self._producer_id, epochs)
        found = []
        for ticket, sequence in tickets:
            state = states[ticket.partition.destination, ticket.partition.number]
            if not isinstance(state, LogState):
                continue
            forgotten = state.last_sequence is None
            if state.last_sequence == wire_sequence(sequence - 1) or (
                forgotten and not ticket.partition.policy.source_compacted
            ):
                found.append(_Proof(ticket, sequence, min(state.end_before, state.high_watermark)))
        return found

    async def _with_source_ends(self, node: int, proofs: Sequence[_Proof]) -> list[_Proof]:
        """Return the proofs with the source's last stable offsets. A new leader does not report them before it knows
        all that was readable (KIP-207)."""
        places = {proof.ticket.partition.source_place: proof for proof in proofs}
        epochs = {place: self._source.leader(*place).epoch for place in places}
        channel = await quiet_channel(self._loop, self._source, node)
        reply = await offsets.ask_offsets(self._loop, channel, places, offsets.LATEST, epochs, isolation=READ_COMMITTED)
        ends = offsets.offsets_of(reply)
        return [
            proof._replace(source_end=ends[place][1])
            for place, proof in places.items()
            if place in ends and not ends[place][0]
        ]


def _holds_all(partition: Partition) -> bool:
    """Return whether the destination has acknowledged all fetched records."""
    position = partition.position
    return (
        position.phase is Phase.REPLICATING
        and partition.idle
        and partition.cursor.sequence == position.acked_sequence
        and not partition.cursor.jumped
        and not partition.cursor.unfinished
        and partition.queue.node >= 0
    )
