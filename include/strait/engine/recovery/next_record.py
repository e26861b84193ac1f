"""Determines the next record: from the destination's leader or, if its state for the link expired, from the log."""

from strait.engine.partition.partition import Partition, Ticket
from strait.engine.recovery import decision
from strait.engine.recovery.decision import Found, LogState, Refused, Scan, Unproven
from strait.engine.recovery.known_runs import KnownRuns
from strait.engine.recovery.passed import PassedMarks
from strait.engine.recovery.producer_state import Refusal, high_watermark
from strait.engine.recovery.tail import Tail
from strait.engine.recovery.tail_scan import ReadRefused, scan, scan_back
from strait.engine.recovery.unresolved import Unresolved
from strait.net import error_policy
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.tasks import RequestLost, sleep
from strait.reasons import Reason

REPLICATION_SECONDS = 2.0
"""Longest wait for the tail of a log to be replicated before the lookup starts over."""
_REPLICATION_POLL_SECONDS = 0.05


class NextRecord:
    """Resolves one partition per call; the caller has already queried the leader for its `LogState`."""

    def __init__(
        self, loop: Loop, destination: ClusterClient, producer_id: int, runs: KnownRuns, marks: PassedMarks
    ) -> None:
        self._loop = loop
        self._destination = destination
        self._producer_id = producer_id
        self._runs = runs
        self._marks = marks

    async def find(self, ticket: Ticket, channel: Channel, state: LogState) -> "Found | Unproven":
        """Return the next record, given the ``state`` that the leader returned over ``channel``. Raises Superseded,
        Unresolved, RequestLost."""
        partition = ticket.partition
        on_foreign = partition.policy.on_foreign
        outcome: Found | Scan | Refused | Unproven = decision.from_leader(
            self._runs.needed(partition), state, on_foreign, cut=partition.position.log_was_cut
        )
        if decision.needs_replicas(outcome, on_foreign):
            await self._until_replicated(ticket, state)
        if isinstance(outcome, Scan):
            outcome = await self._read(ticket, channel, state, outcome)
        return _settled(outcome)

    async def find_in_log(self, ticket: Ticket, channel: Channel, state: LogState) -> "Found | Unproven":
        """Return the next record, determined by reading the whole log. Raises Superseded, Unresolved, RequestLost."""
        await self._until_replicated(ticket, state)
        scan = Scan(decision.least_offset(self._runs.needed(ticket.partition)), whole=True)
        return _settled(await self._read(ticket, channel, state, scan))

    async def _read(
        self, ticket: Ticket, channel: Channel, state: LogState, scan: Scan
    ) -> "Found | Refused | Unproven":
        start = max(scan.start, state.log_start)
        tail = await (self._scan_back if scan.whole else self._scan)(ticket, channel, start, state.end)
        ticket.check()
        partition = ticket.partition
        policy = partition.policy
        return decision.from_scan(
            self._runs.needed(partition), state.end, scan, tail, policy.on_foreign, compacted=policy.source_compacted
        )

    async def _until_replicated(self, ticket: Ticket, state: LogState) -> None:
        """Wait until everything in the leader's log is readable. A leader whose state for the link has expired would
        accept again the records that its followers do not have yet."""
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
            self._show_search(partition, f"read up to offset {to} of {end}, from {start}")
            if seen.last_sequence is None:
                self._marks.mark(partition, decision.checkpoint_of(self._runs.needed(partition)), to)

        try:
            return await scan(self._loop, channel, partition, self._producer_id, start, end, progress)
        except ReadRefused as refused:
            raise Unresolved.refused(Refusal(refused.code, "the tail of its log")) from refused

    async def _scan_back(self, ticket: Ticket, channel: Channel, start: int, end: int) -> Tail:
        partition = ticket.partition

        def progress(to: int) -> None:
            ticket.check()
            self._show_search(partition, f"read back from offset {end} to {to}, at most to {start}")

        # If an acknowledgement has shown a loss, foreign records may have shifted a later record to a confirmed offset.
        confirmed = {} if partition.position.log_was_cut else decision.confirmed_places(self._runs.needed(partition))
        try:
            return await scan_back(self._loop, channel, partition, self._producer_id, start, end, confirmed, progress)
        except ReadRefused as refused:
            raise Unresolved.refused(Refusal(refused.code, "its log")) from refused

    def _show_search(self, partition: Partition, how_far: str) -> None:
        partition.show(Reason.LOOKING_UP, f"searching for the link's last record: {how_far}")


def _settled(outcome: "Found | Refused | Unproven") -> "Found | Unproven":
    if isinstance(outcome, Refused):  # the topic may have been recreated; only metadata shows that
        raise Unresolved(outcome.reason, outcome.detail, error_policy.wait_for(outcome.reason), refresh=True)
    return outcome
