"""Finds out which record is next: from the destination's leader, or if it has forgotten the link from the log itself."""

from collections.abc import Sequence

from strait.engine.partition.partition import Partition, Ticket
from strait.engine.recovery import decision
from strait.engine.recovery.decision import Found, LogState, Refused, Scan, Tail, Unproven
from strait.engine.recovery.known_runs import KnownRuns
from strait.engine.recovery.producer_state import Refusal, high_watermark
from strait.engine.recovery.tail_scan import ReadRefused, scan
from strait.engine.recovery.unresolved import Unresolved
from strait.net import error_policy
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.tasks import RequestLost, sleep
from strait.reasons import Reason
from strait.state.offset_map import covering, destination_offset, locate
from strait.state.schema import OffsetMapping
from strait.state.sink import StateSink

REPLICATION_SECONDS = 2.0
"""How long to wait for the tail of a log to be replicated before everything is asked again."""
_REPLICATION_POLL_SECONDS = 0.05


class NextRecord:
    """Asks for one partition at a time; the caller has asked the leader for its `LogState`."""

    def __init__(
        self, loop: Loop, destination: ClusterClient, producer_id: int, runs: KnownRuns, state_sink: StateSink
    ) -> None:
        self._loop = loop
        self._destination = destination
        self._producer_id = producer_id
        self._runs = runs
        self._state_sink = state_sink

    async def find(self, ticket: Ticket, channel: Channel, state: LogState) -> "Found | Unproven":
        """Which record is next, from what the leader says, to which ``channel`` leads. Raises Superseded, Unresolved,
        RequestLost."""
        partition = ticket.partition
        on_foreign = partition.policy.on_foreign
        outcome: Found | Scan | Refused | Unproven = decision.from_leader(
            self._runs.needed(partition), state, on_foreign
        )
        if decision.needs_replicas(outcome, on_foreign):
            await self._until_replicated(ticket, state)
        if isinstance(outcome, Scan):
            tail = await self._scan(ticket, channel, max(outcome.start, state.log_start), state.end)
            ticket.check()
            outcome = decision.from_tail(self._runs.needed(partition), state.end, tail, on_foreign)
        if isinstance(outcome, Refused):  # the topic may be another one by now, which only metadata tells
            raise Unresolved(outcome.reason, outcome.detail, error_policy.wait_for(outcome.reason), refresh=True)
        return outcome

    async def find_in_log(self, ticket: Ticket, channel: Channel, state: LogState) -> Found:
        """Which record is next, from all that the log holds. Raises Superseded, Unresolved, RequestLost."""
        partition = ticket.partition
        await self._until_replicated(ticket, state)
        start = max(self._runs.needed(partition)[0].destination_base, state.log_start)
        tail = await self._scan(ticket, channel, start, state.end)
        ticket.check()
        runs, on_foreign = self._runs.needed(partition), partition.policy.on_foreign
        outcome = decision.from_whole_log(runs, state.end, tail, on_foreign)
        if isinstance(outcome, Refused):
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
            channel = self._destination.prompt_channel(partition.queue.node)
            if channel is None:
                raise RequestLost("its leader is unreachable")
            epoch = self._destination.leader(partition.destination, partition.number).epoch
            answer = await high_watermark(self._loop, channel, (partition.destination, partition.number), epoch)
            ticket.check()
            if isinstance(answer, Refusal):
                raise Unresolved.refused(answer)
            readable = answer

    async def _scan(self, ticket: Ticket, channel: Channel, start: int, end: int) -> Tail:
        partition = ticket.partition

        def progress(seen: Tail, to: int) -> None:
            ticket.check()
            detail = f"searching for the link's last record: read up to offset {to} of {end}, from {start}"
            partition.show(Reason.LOOKING_UP, detail)
            if seen.last_sequence is None:
                self.remember_passed(partition, to)

        try:
            return await scan(self._loop, channel, partition, self._producer_id, start, end, progress)
        except ReadRefused as refused:
            raise Unresolved.refused(Refusal(refused.code, "the tail of its log")) from refused

    def remember_passed(self, partition: Partition, offset: int) -> None:
        """Write down that nothing of the link is in the copy between its newest checkpoint and this offset, so that the
        next look need not read that again. Only where others write: elsewhere the offset would be taken for ours."""
        runs = self._runs.of(partition)
        if partition.policy.on_foreign != "expect" or not runs:
            return
        checkpoint = decision.checkpoint_of(runs)
        run = covering(runs, checkpoint)
        if run.source_id == partition.ids[0] and destination_offset(run, checkpoint) < offset:
            position = locate(runs, checkpoint)
            base = {"sequence_base": checkpoint, "source_base": position, "destination_base": offset, "gaps": ""}
            passed = run.model_copy(update=base | {"sequence_end": checkpoint, "after_unknown": False})
            earlier = [one for one in runs[1:] if one != passed and _is_passed(one, checkpoint, position, offset)]
            self._state_sink.write_run(passed, lambda error: None if error else self._forget_all(earlier))

    def _forget_all(self, runs: Sequence[OffsetMapping]) -> None:
        for one in runs:
            self._state_sink.forget_run(one)


def _is_passed(run: OffsetMapping, checkpoint: int, position: int, offset: int) -> bool:
    """It says no more than that nothing of the link is before some destination offset up to this one."""
    where = run.sequence_base, run.sequence_end, run.source_base, run.gaps
    return where == (checkpoint, checkpoint, position, "") and run.destination_base <= offset
