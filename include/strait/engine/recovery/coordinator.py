"""Finds out where partitions stand: the one recovery path, from a doubt to a position.

1. The destination's leader, or if it has forgotten the link the log itself, says which record is next
   (`producer_state`, `tail_scan`, `decision`).
2. The map is read up to where it ended after that answer, since another writer of the link may have written down gaps
   before the records that were just found.
3. The map names the source record that was copied last. Both sides are read and compared (`verification`).
4. Copying goes on behind it, or the partition says why not.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence

from strait.engine.partition import Partition, Phase
from strait.engine.recovery import contention, decision
from strait.engine.recovery.decision import (
    Found,
    LogState,
    Refused,
    Scan,
    Tail,
    Unproven,
)
from strait.engine.recovery.map_end import Map, MapEnd
from strait.engine.recovery.placement import Placed, Placement
from strait.engine.recovery.producer_state import Refusal, ask_log_states, high_watermark
from strait.engine.recovery.tail_scan import ReadRefused, scan
from strait.engine.recovery.ticket import Superseded, Ticket, Unresolved
from strait.engine.recovery.verification import Unreadable
from strait.engine.state_sink import StateSink
from strait.errors import ProtocolError
from strait.model import topic_id_text
from strait.net import error_policy
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.tasks import RequestLost, run, sleep
from strait.reasons import Reason
from strait.state.offset_map import covering, destination_offset, locate
from strait.state.schema import OffsetMapping

FIND_SECONDS = 0.02
REPLICATION_SECONDS = 2.0
"""How long to wait for the tail of a log to be replicated before everything is asked anew."""
_REPLICATION_POLL_SECONDS = 0.05
_LOST = error_policy.Answer(Reason.DESTINATION_UNREACHABLE, error_policy.SOON_SECONDS)
"""On its way: the next connection is dialled with pauses of its own."""

ResetPosition = Callable[[Partition, Reason | None, str, tuple[float, float]], None]


class RecoveryCoordinator:
    """``problem(partition)``: why its destination cannot be asked; ``reset_position``: it was not found, look again;
    ``placed``: copying goes on."""

    def __init__(
        self,
        loop: Loop,
        source: ClusterClient,
        destination: ClusterClient,
        producer_id: int,
        known: Map,
        map_topic: str,
        state_sink: StateSink,
        *,
        problem: Callable[[Partition], tuple[Reason, str] | None],
        reset_position: ResetPosition,
        placed: Callable[[Partition, Placed], None],
    ) -> None:
        self._loop = loop
        self._source = source
        self._destination = destination
        self._producer_id = producer_id
        self._known = known
        self._map_end = MapEnd(loop, destination, known, map_topic)
        self._placement = Placement(loop, source, destination, producer_id, self._runs_now, placed)
        self._state_sink = state_sink
        self._problem = problem
        self._reset_position = reset_position
        self._lost: set[Partition] = set()
        self._find_at = 0.0

    @property
    def reads_map(self) -> bool:
        """Partitions wait for the map to be read on."""
        return self._map_end.is_awaited

    def add(self, partition: Partition) -> None:
        """Find its position once its time has come and nothing of it is in flight."""
        self._lost.add(partition)

    def forget(self, partition: Partition) -> None:
        self._lost.discard(partition)

    def step(self) -> None:
        """Begin and end what is due."""
        if self._lost and self._loop.now >= self._find_at:
            self._find_at = self._loop.now + FIND_SECONDS
            self._begin()
        self._map_end.step()

    def _begin(self) -> None:
        by_node: dict[int, list[Partition]] = defaultdict(list)
        for partition in self._lost:
            if partition.in_flight or partition.retry_at > self._loop.now:
                continue
            problem = self._problem(partition)
            if problem is None and not self.runs_of(partition):
                problem = Reason.MAP_RUN_MISSING, "the map has no run for these two topics"
            if problem is not None:
                partition.reason, partition.detail = problem
                partition.retry_at = self._loop.now + error_policy.SHORTLY_SECONDS[0]
                self._destination.refresh()
            elif partition.destination_node >= 0:
                by_node[partition.destination_node].append(partition)
        for node, partitions in by_node.items():
            self._resolve_at(node, partitions)

    def _resolve_at(self, node: int, partitions: list[Partition]) -> None:
        channel = self._destination.prompt_channel(node)
        if channel is None:
            trouble = self._destination.trouble(node)
            for partition in partitions if trouble else ():
                partition.reason, partition.detail = Reason.DESTINATION_UNREACHABLE, trouble
            return
        self._lost.difference_update(partitions)
        for partition in partitions:
            partition.recoveries += 1
            partition.phase = Phase.RESOLVING
        run(self._resolve(channel, [Ticket(partition, partition.generation, channel) for partition in partitions]))

    async def _resolve(self, channel: Channel, tickets: list[Ticket]) -> None:
        epochs = {
            (ticket.partition.destination, ticket.partition.number): self._destination.leader(
                ticket.partition.destination, ticket.partition.number
            ).epoch
            for ticket in tickets
        }
        try:
            states = await ask_log_states(self._loop, channel, self._producer_id, epochs)
        except (RequestLost, ProtocolError) as lost:  # the latter: the broker does not serve what is asked for
            for ticket in tickets:
                self._again(ticket, Unresolved.of(_LOST, f"looking up the position: {lost}"))
            return
        for ticket in tickets:
            run(self._settle(ticket, states[ticket.partition.destination, ticket.partition.number]))

    async def _settle(self, ticket: Ticket, state: LogState | Refusal) -> None:
        try:
            ticket.check()
            if isinstance(state, Refusal):
                raise Unresolved.refused(state)
            found = await self._find(ticket, state)
            ticket.check()
            await self._map_end.reached(ticket.partition)
            ticket.check()
            await self._place(ticket, found)
        except Superseded:
            return
        except Unresolved as trouble:
            self._again(ticket, trouble)
        except Unreadable as trouble:
            self._again(ticket, Unresolved.of(trouble.answer, f"verifying the last record: {trouble.cause}"))
        except RequestLost as lost:
            self._again(ticket, Unresolved.of(_LOST, f"looking up the position: {lost}"))

    def _again(self, ticket: Ticket, trouble: Unresolved) -> None:
        """It could not be found this time."""
        if not ticket.is_current:
            return
        if trouble.refresh:
            self._source.refresh()
            self._destination.refresh()
        self._reset_position(ticket.partition, trouble.reason, trouble.detail, trouble.wait_seconds)

    # --- which record is next -----------------------------------------------------------------------------------------

    async def _find(self, ticket: Ticket, state: LogState) -> "Found | Unproven":
        partition = ticket.partition
        on_foreign = partition.policy.on_foreign
        outcome: Found | Scan | Refused | Unproven = decision.from_leader(self._runs_now(partition), state, on_foreign)
        if decision.needs_replicas(outcome, on_foreign):
            await self._until_replicated(ticket, state)
        if isinstance(outcome, Scan):
            tail = await self._scan(ticket, max(outcome.start, state.log_start), state.end)
            ticket.check()
            outcome = decision.from_tail(self._runs_now(partition), state.end, tail, on_foreign)
        if isinstance(outcome, Refused):  # the topic may be another one by now, which only metadata tells
            raise Unresolved(outcome.reason, outcome.detail, error_policy.wait_for(outcome.reason), refresh=True)
        return outcome

    async def _until_replicated(self, ticket: Ticket, state: LogState) -> None:
        """A leader that has forgotten the link would take again what its followers do not have yet. So all that was in
        its log must be readable before anything is decided."""
        partition, readable, deadline = ticket.partition, state.high_watermark, self._loop.now + REPLICATION_SECONDS
        while not decision.is_replicated(state.end, readable):
            if self._loop.now > deadline:
                raise Unresolved(
                    Reason.LOOKING_UP,
                    f"offsets {readable} to {state.end - 1} are not replicated yet, and may hold records of this link",
                    error_policy.SHORTLY_SECONDS,
                )
            await sleep(self._loop, _REPLICATION_POLL_SECONDS)
            ticket.check()
            node = partition.destination_node
            channel = self._destination.prompt_channel(node)
            if channel is None:
                raise RequestLost("its leader cannot be reached")
            epoch = self._destination.leader(partition.destination, partition.number).epoch
            answer = await high_watermark(self._loop, channel, (partition.destination, partition.number), epoch)
            ticket.check()
            if isinstance(answer, Refusal):
                raise Unresolved.refused(answer)
            readable = answer

    async def _scan(self, ticket: Ticket, start: int, end: int) -> Tail:
        partition = ticket.partition

        def progress(seen: Tail, to: int) -> None:
            ticket.check()
            detail = f"read up to offset {to} of {end} for the link's last record, from {start}"
            partition.reason, partition.detail = Reason.LOOKING_UP, detail
            if seen.last_sequence is None:
                self._remember_passed(partition, to)

        try:
            return await scan(self._loop, ticket.channel, partition, self._producer_id, start, end, progress)
        except ReadRefused as refused:
            raise Unresolved.refused(Refusal(refused.code, "the tail of its log")) from refused

    def _remember_passed(self, partition: Partition, offset: int) -> None:
        """Write down that nothing of the link is in the copy between its newest checkpoint and this offset, so that the
        next look need not read that again. Only where others write: elsewhere the offset would be taken for ours."""
        runs = self.runs_of(partition)
        if partition.policy.on_foreign != "expect" or not runs:
            return
        checkpoint = decision.checkpoint_of(runs)
        run = covering(runs, checkpoint)
        if run.source_id == topic_id_text(partition.source_id) and destination_offset(run, checkpoint) < offset:
            position = locate(runs, checkpoint)
            base = {"sequence_base": checkpoint, "source_base": position, "destination_base": offset, "gaps": ""}
            passed = run.model_copy(update=base | {"sequence_end": checkpoint})
            earlier = [one for one in runs[1:] if one != passed and _is_passed(one, checkpoint, position, offset)]
            self._state_sink.write_run(passed, lambda error: None if error else self._forget_all(earlier))

    def _forget_all(self, runs: Sequence[OffsetMapping]) -> None:
        for one in runs:
            self._state_sink.forget_run(one)

    # --- where it goes on ---------------------------------------------------------------------------------------------

    async def _place(self, ticket: Ticket, outcome: "Found | Unproven") -> None:
        partition, runs = ticket.partition, self._runs_now(ticket.partition)
        if isinstance(outcome, Found):
            outcome = with_what_was_acknowledged(partition, outcome)
        found = outcome.found if isinstance(outcome, Unproven) else outcome
        if contention.keeps_out(partition, found.sequence, self._loop.now):
            self.add(partition)
            return
        if found.passed > destination_offset(covering(runs, found.sequence), found.sequence):
            self._remember_passed(partition, found.passed)
        await self._placement.place(ticket, outcome)

    # --- while it is being copied ------------------------------------------------------------------------------------

    def verify(self, partition: Partition, decided: Callable[["tuple[int, int] | None"], None]) -> None:
        """Find out whether the last record that was copied is in the source still: ``decided`` gets the source position
        behind it and its leader epoch, or None. Not called if the position is reset meanwhile."""
        channel = self._destination.prompt_channel(partition.destination_node)
        if channel is None:
            detail = "verifying the last record: the destination's leader cannot be reached"
            self._reset_position(partition, Reason.DESTINATION_UNREACHABLE, detail, error_policy.SHORTLY_SECONDS)
        else:
            run(self._verify_running(Ticket(partition, partition.generation, channel, running=True), decided))

    async def _verify_running(self, ticket: Ticket, decided: Callable[["tuple[int, int] | None"], None]) -> None:
        try:
            decided(await self._placement.running(ticket))
        except Superseded:
            return
        except Unreadable as trouble:
            self._again(ticket, Unresolved.of(trouble.answer, f"verifying the last record: {trouble.cause}"))

    # --- the map ------------------------------------------------------------------------------------------------------

    def runs_of(self, partition: Partition) -> Sequence[OffsetMapping]:
        """The runs for exactly these two topics; where there are none and the policy lets a source topic that was made
        anew be copied, those of its predecessor, which still say how far the destination is."""
        source_id, destination_id = topic_id_text(partition.source_id), topic_id_text(partition.destination_id)
        into = [
            run
            for run in self._known.runs.get((partition.topic, partition.number), ())
            if run.destination_id == destination_id and run.destination == partition.destination
        ]
        own = [run for run in into if run.source_id == source_id]
        return own or (into if partition.policy.on_loss != "halt" else ())

    def _runs_now(self, partition: Partition) -> Sequence[OffsetMapping]:
        runs = self.runs_of(partition)
        if not runs:
            reason = Reason.MAP_RUN_MISSING
            raise Unresolved.until_decided(reason, "the map has no run for these two topics")
        return runs


def _is_passed(run: OffsetMapping, checkpoint: int, position: int, offset: int) -> bool:
    """It says no more than that nothing of the link is before some destination offset up to this one."""
    where = run.sequence_base, run.sequence_end, run.source_base, run.gaps
    return where == (checkpoint, checkpoint, position, "") and run.destination_base <= offset


def with_what_was_acknowledged(partition: Partition, found: Found) -> Found:
    """What this slot itself knows to be acknowledged is lost too where it is no more: no checkpoint may say so yet.
    What was only found in the log does not count, since its followers may not have had it."""
    if not partition.found_sequence < partition.acked_sequence > found.sequence:
        return found
    start, end = found.lost or (found.sequence + partition.shift, 0)
    return found._replace(lost=(start, max(end, partition.expected_offset)))
