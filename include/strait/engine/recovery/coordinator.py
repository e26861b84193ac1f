"""Determines the positions of partitions: the one recovery path, from an unknown position to a known one.

1. The destination's leader or, if its state for the link has expired, the log itself shows which record is next
   (`next_record`, `producer_state`, `tail_scan`, `decision`).
2. The map is read up to the end that it had after that response, since another writer of the link may have recorded
   gaps before the records that were just found.
3. The map names the source record that was copied last. Both sides are read and compared (`verification`).
4. Replication resumes after that record, or the partition shows why it cannot.
"""

import random
from collections import defaultdict
from collections.abc import Callable

from strait.engine.loss_ledger import LossLedger
from strait.engine.partition.partition import Partition, Superseded, Ticket
from strait.engine.recovery import contention
from strait.engine.recovery.confirmation import Confirmation
from strait.engine.recovery.decision import Found, LogState, Unproven, checkpoint_of
from strait.engine.recovery.known_runs import KnownRuns, Map
from strait.engine.recovery.log_looks import LogLooks
from strait.engine.recovery.map_end import MapEnd
from strait.engine.recovery.next_record import NextRecord
from strait.engine.recovery.passed import PassedMarks
from strait.engine.recovery.placement import Placed, Placement
from strait.engine.recovery.producer_state import Refusal
from strait.engine.recovery.topic_problems import destination_problem
from strait.engine.recovery.truncation import Truncation
from strait.engine.recovery.unresolved import Unresolved
from strait.engine.recovery.verification import CopyMissing, Unreadable
from strait.errors import ProtocolError
from strait.net import error_policy
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.tasks import RequestLost, run
from strait.reasons import Reason
from strait.state.sink import StateSink

FIND_SECONDS = 0.02
_LOST = error_policy.Answer(Reason.DESTINATION_UNREACHABLE, error_policy.SOON_SECONDS)
"""Retried soon: reconnecting has a separate backoff."""


class RecoveryCoordinator:
    """Recovers the positions of all partitions of a slot."""

    def __init__(
        self,
        loop: Loop,
        source: ClusterClient,
        destination: ClusterClient,
        producer_id: int,
        known: Map,
        map_topic: str,
        state_sink: StateSink,
        loss_ledger: LossLedger,
        *,
        schedule: Callable[[Partition], None],
    ) -> None:
        """``schedule``: gives a partition that has something to send its turn."""
        self._loop = loop
        self._source = source
        self._destination = destination
        self._looks = LogLooks(loop, destination, producer_id)
        self._runs = KnownRuns(known)
        self._map_end = MapEnd(loop, destination, known, map_topic)
        self.marks = PassedMarks(self._runs, state_sink)
        self._next_record = NextRecord(loop, destination, producer_id, self._runs, self.marks)
        self._placement = Placement(loop, source, destination, producer_id, self._runs)
        self._truncation = Truncation(loop, source, loss_ledger)
        self._loss_ledger = loss_ledger
        self._lost: set[Partition] = set()
        self._placed: list[Partition] = []
        self._find_at = 0.0
        self.confirmation = Confirmation(
            loop, destination, self._looks, self._next_record, schedule=schedule, look_up=self._look_up
        )

    @property
    def reads_map(self) -> bool:
        """Whether partitions wait for the map to be read further."""
        return self._map_end.is_awaited

    def take_placed(self) -> list[Partition]:
        """Return the partitions whose position has become known, for the first time, since the last call."""
        placed, self._placed = self._placed, []
        return placed

    def add(self, partition: Partition) -> None:
        """Schedule a lookup of its position, for when its retry time has come and nothing of it is in flight."""
        self._lost.add(partition)

    def forget(self, partition: Partition) -> None:
        self._lost.discard(partition)
        self.confirmation.forget(partition)

    def reset(
        self, partition: Partition, reason: Reason | None, detail: str, wait_seconds: tuple[float, float]
    ) -> None:
        """Reset the position, since sent batches may or may not be in the log, and schedule a lookup, later after each
        failure."""
        shortest, longest = wait_seconds
        wait = min(longest, shortest * 2 ** min(partition.position.failures, 8))
        wait = max(shortest, wait * random.uniform(0.6, 1.0))  # noqa: S311
        partition.reset_position(reason, detail, self._loop.now + wait)
        partition.position.look_failed()
        self.add(partition)

    def step(self) -> None:
        """Start the lookups that are due, and advance those that wait for the map."""
        self.confirmation.step()
        if self._lost and self._loop.now >= self._find_at:
            self._find_at = self._loop.now + FIND_SECONDS
            self._begin()
        self._map_end.step()

    def _look_up(self, partition: Partition) -> None:
        partition.reset_position(None, "", self._loop.now)
        self.add(partition)

    def _begin(self) -> None:
        by_node: dict[int, list[Partition]] = defaultdict(list)
        for partition in self._lost:
            if partition.queue.in_flight or partition.position.retry_at > self._loop.now:
                continue
            problem = destination_problem(self._destination, partition)
            if problem is not None:
                leaderless = problem[0] is Reason.DESTINATION_LEADERLESS
                self._destination.look_again(partition.destination, leaderless=leaderless)
            elif not self._runs.of(partition):
                problem = Reason.MAP_RUN_MISSING, "the offset map has no entry for these two topics"
            elif any(run.transform != partition.policy.transform_digest for run in self._runs.of(partition)):
                problem = (
                    Reason.TRANSFORM_CHANGED,
                    "according to the offset map, its records were made by another transformation, or by none",
                )
            if problem is not None:
                partition.show(*problem)
                partition.position.postpone(self._loop.now + error_policy.SHORTLY_SECONDS[0])
            elif partition.queue.node >= 0:
                by_node[partition.queue.node].append(partition)
        for node, partitions in by_node.items():
            self._resolve_at(node, partitions)

    def _resolve_at(self, node: int, partitions: list[Partition]) -> None:
        channel = self._destination.prompt_channel(node)
        if channel is None:
            trouble = self._destination.trouble(node)
            reason = error_policy.away(Reason.DESTINATION_UNREACHABLE, self._destination.why_away(node))
            for partition in partitions if trouble else ():
                partition.show(reason, trouble)
            return
        self._lost.difference_update(partitions)
        for partition in partitions:
            partition.position.resolve()
        run(self._resolve(node, channel, [partition.ticket() for partition in partitions]))

    async def _resolve(self, node: int, channel: Channel, tickets: list[Ticket]) -> None:
        try:
            states, look = await self._looks.look(node, channel, tickets)
        except (RequestLost, ProtocolError) as lost:  # ProtocolError: the broker does not serve a request
            for ticket in tickets:
                self._again(ticket, Unresolved.of(_LOST, f"looking up the position: {lost}"))
            return
        for ticket in tickets:
            run(self._settle(ticket, channel, states[ticket.partition.destination, ticket.partition.number], look))

    async def _settle(self, ticket: Ticket, channel: Channel, state: LogState | Refusal, look: contention.Look) -> None:
        try:
            ticket.check()
            if isinstance(state, Refusal):
                raise Unresolved.refused(state)
            found = await self._next_record.find(ticket, channel, state)
            ticket.check()
            if self._keeps_out(ticket.partition, found, look):
                return
            await self._map_end.reached(ticket.partition)
            ticket.check()
            try:
                await self._place(ticket, found, state.log_start)
            except CopyMissing:
                found = await self._next_record.find_in_log(ticket, channel, state)
                # Another instance that resumed from there would have written after the checkpoint, and been detected.
                await self._place(ticket, found)
        except Superseded:
            return
        except Unresolved as trouble:
            self._again(ticket, trouble)
        except Unreadable as trouble:
            self._again(ticket, _unverified(trouble))
        except RequestLost as lost:
            self._again(ticket, Unresolved.of(_LOST, f"looking up the position: {lost}"))

    def _again(self, ticket: Ticket, trouble: Unresolved) -> None:
        """Schedule another lookup after one that failed."""
        if not ticket.is_current:
            return
        if trouble.refresh:
            self._source.refresh((ticket.partition.source_topic,))
            self._destination.refresh((ticket.partition.destination,))
        self.reset(ticket.partition, trouble.reason, trouble.detail, trouble.wait_seconds)

    # --- resuming -----------------------------------------------------------------------------------------------------

    def _keeps_out(self, partition: Partition, outcome: "Found | Unproven", look: contention.Look) -> bool:
        """Return whether another instance may be writing. If so, schedule another lookup."""
        if isinstance(outcome, Unproven):  # its number may be derived from foreign records
            outcome = outcome.found._replace(sequence=checkpoint_of(self._runs.needed(partition)))
        if not contention.keeps_out(partition, outcome.sequence, look):
            return False
        self.add(partition)
        return True

    async def _place(self, ticket: Ticket, outcome: "Found | Unproven", log_start: int = -1) -> None:
        partition = ticket.partition
        if isinstance(outcome, Found):
            outcome = with_what_was_acknowledged(partition, outcome)
        found = outcome if isinstance(outcome, Found) else outcome.found
        is_first = partition.position.run is None
        placed = await self._placement.place(ticket, outcome, log_start)
        if is_first:
            self._placed.append(partition)
        if found.passed >= 0:
            partition.position.pass_others(found.passed)
            self.marks.mark(partition, found.sequence, found.passed)
        self._resume(partition, placed)

    def _resume(self, partition: Partition, placed: Placed) -> None:
        """Resume replication; losses are recorded first."""
        if partition.reason in error_policy.AWAY or partition.reason is Reason.LOOKING_UP:
            partition.clear()
        if placed.found.lost is not None:
            start, end = placed.found.lost
            if placed.last_offset >= 0:  # read from the log; among foreign records the map may place it later
                start = min(start, placed.last_offset + 1)
            self._loss_ledger.destination_lost(partition, start, end)
        if placed.unproven is not None:
            self._loss_ledger.position_unproven(partition, *placed.unproven)
        if placed.anew:
            self._loss_ledger.source_recreated(partition)
        if placed.truncated_at >= 0:
            self._truncation.diverged(partition, placed.truncated_at)

    # --- while it is being copied ------------------------------------------------------------------------------------

    def out_of_range(self, partition: Partition) -> None:
        """Handle a fetch offset that the source rejects."""
        run(self._truncation.look_into(partition))

    def diverged(self, partition: Partition, end: int) -> None:
        """Handle a source leader that reports that its log, as we know it, ended at ``end``, before the cursor."""
        run(self._check_divergence(partition, end))

    async def _check_divergence(self, partition: Partition, end: int) -> None:
        """Handle a source log that differs from the one that was copied. If only the map indicates that, compare the
        last record: records of a later leader may have been copied since the last checkpoint."""
        if not partition.cursor.epoch_unproven:
            self._truncation.diverged(partition, end)
            return
        ticket = partition.ticket()
        partition.cursor.hold(self._loop.now)  # a fetch before the result would report the same again
        try:
            last = await self._placement.running(ticket)
        except Superseded:
            return
        except Unreadable as trouble:
            self._again(ticket, _unverified(trouble))
            return
        partition.cursor.release()
        if last is None:
            self._truncation.diverged(partition, end)
            return
        offset, epoch = last
        if offset != partition.position.copied_to:
            partition.jump(offset)  # as the log was then, nothing between the two was to be copied; it is read again
        partition.cursor.prove(epoch)


def with_what_was_acknowledged(partition: Partition, found: Found) -> Found:
    """Extend the lost range to every record that this slot saw acknowledged and that is no longer in the log: the
    newest checkpoint may not cover it yet. Records that were only read from the log do not count, since its followers
    may not have had them."""
    position = partition.position
    if not position.found_sequence < position.acked_sequence > found.sequence:
        return found
    start, end = found.lost or (found.sequence + position.shift, 0)
    return found._replace(lost=(start, max(end, position.expected_offset)))


def _unverified(trouble: Unreadable) -> Unresolved:
    return Unresolved.of(trouble.answer, f"verifying the last record: {trouble.cause}")
