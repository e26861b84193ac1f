"""Finds out where partitions stand: the one recovery path, from a doubt to a position.

1. The destination's leader, or if it has forgotten the link the log itself, says which record is next (`producer_state`,
   `tail_scan`, `decision`).
2. The map is read up to where it ended after that answer, since another writer of the link may have written down gaps before
   the records that were just found.
3. The map names the source record that was copied last. Both sides are read and compared (`verification`).
4. Copying goes on behind it, or the partition says why not.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from kafka.protocol.consumer import ListOffsetsResponse

from strait.engine import codes
from strait.engine.channel import Channel
from strait.engine.cluster import Cluster
from strait.engine.loop import Loop
from strait.engine.notebook import Notebook
from strait.engine.offsets import API_KEY, LATEST, VERSIONS, offsets_of, offsets_request
from strait.engine.partition import Partition, Phase
from strait.engine.recovery import contention, decision
from strait.engine.recovery.decision import Found, LogState, Refused, Scan, Tail, Unproven
from strait.engine.recovery.producer_state import Refusal, ask_log_states, high_watermark, log_ends
from strait.engine.recovery.tail_scan import ReadRefused, scan
from strait.engine.recovery.verification import (
    DIFFERENT,
    Copied,
    Unreadable,
    Verdict,
    Verified,
    compare,
    is_repetition,
    read_copied,
)
from strait.engine.tasks import Future, RequestLost, ask, run, sleep
from strait.model import topic_id_text
from strait.offset_map import candidates, covering, destination_offset, locate, places, wire_sequence
from strait.reasons import Reason
from strait.state.schema import Run

FIND_SECONDS = 0.02
REPLICATION_SECONDS = 2.0
"""How long to wait for the tail of a log to be replicated before everything is asked anew."""
_REPLICATION_POLL_SECONDS = 0.05
_LOST = codes.Answer(Reason.DESTINATION_UNREACHABLE, codes.SOON_SECONDS)
"""On its way: the next connection is dialled with pauses of its own."""

ResetPosition = Callable[[Partition, Reason | None, str, tuple[float, float]], None]


class Map(Protocol):
    """The map as it is read by its owner. ``map_end``: the first offset of its topic that was not read yet."""

    @property
    def runs(self) -> Mapping[tuple[str, int], Sequence[Run]]: ...

    @property
    def map_end(self) -> int: ...


class Placed(NamedTuple):
    """What is to be known of a partition that has a position.

    Attributes:
        found: from the destination.
        anew: it begins with the first record of a source topic that replaced another.
        truncated_at: the source's log was cut there, below the position; -1 if it was not.
        unproven: why the position is not proven, with the reason code, and the destination offsets concerned. The topic's
            policy lets copying go on all the same.
    """

    found: Found
    anew: bool = False
    truncated_at: int = -1
    unproven: "tuple[Reason, str, tuple[int, int]] | None" = None


class _Superseded(Exception):
    """The partition's position was reset again, or the plan gave it away."""


class _Unresolved(Exception):
    """The position could not be found out this time."""

    def __init__(
        self, reason: Reason, detail: str, wait_seconds: tuple[float, float], *, refresh: bool = False
    ) -> None:
        super().__init__(detail)
        self.reason, self.detail, self.wait_seconds, self.refresh = reason, detail, wait_seconds, refresh

    @classmethod
    def of(cls, answer: codes.Answer, detail: str) -> "_Unresolved":
        return cls(answer.reason, detail, answer.wait_seconds, refresh=True)


class _Ticket(NamedTuple):
    """One partition's turn. Whoever has waited on its behalf checks that it is current."""

    partition: Partition
    generation: int
    channel: Channel

    @property
    def is_current(self) -> bool:
        partition = self.partition
        return partition.phase is Phase.LOOKING and partition.generation == self.generation and not partition.retired

    def check(self) -> None:
        if not self.is_current:
            raise _Superseded


class RecoveryCoordinator:
    """``problem(partition)``: why its destination cannot be asked; ``reset_position``: it was not found, look again;
    ``placed``: copying goes on."""

    def __init__(
        self,
        loop: Loop,
        source: Cluster,
        destination: Cluster,
        producer_id: int,
        known: Map,
        map_topic: str,
        notebook: Notebook,
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
        self._map_topic = map_topic
        self._notebook = notebook
        self._problem = problem
        self._reset_position = reset_position
        self._placed = placed
        self._lost: set[Partition] = set()
        self._find_at = 0.0
        self._standing: list[tuple[Partition, Future[None]]] = []  # wait for the map's end to be asked for
        self._asking = False
        self._reading: list[tuple[int, list[Future[None]]]] = []  # until the map is read up to there

    @property
    def reads_map(self) -> bool:
        """Partitions wait for the map to be read on."""
        return bool(self._reading)

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
        if self._standing and not self._asking:
            self._ask_for_the_maps_end()
        while self._reading and self._known.map_end >= self._reading[0][0]:
            for standing in self._reading.pop(0)[1]:
                standing.resolve(None)

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
                partition.retry_at = self._loop.now + codes.SHORTLY_SECONDS[0]
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
            partition.phase = Phase.LOOKING
        run(self._resolve(channel, [_Ticket(partition, partition.generation, channel) for partition in partitions]))

    async def _resolve(self, channel: Channel, tickets: list[_Ticket]) -> None:
        epochs = {
            (ticket.partition.destination, ticket.partition.number): self._destination.leader(
                ticket.partition.destination, ticket.partition.number
            ).epoch
            for ticket in tickets
        }
        try:
            states = await ask_log_states(self._loop, channel, self._producer_id, epochs)
        except RequestLost as lost:
            for ticket in tickets:
                self._again(ticket, _Unresolved.of(_LOST, f"looking up the position: {lost}"))
            return
        for ticket in tickets:
            run(self._settle(ticket, states[ticket.partition.destination, ticket.partition.number]))

    async def _settle(self, ticket: _Ticket, state: LogState | Refusal) -> None:
        try:
            ticket.check()
            found = await self._find(ticket, state)
            ticket.check()
            await self._map_is_read(ticket.partition)
            ticket.check()
            await self._place(ticket, found)
        except _Superseded:
            return
        except _Unresolved as trouble:
            self._again(ticket, trouble)
        except Unreadable as trouble:
            self._again(ticket, _Unresolved.of(trouble.answer, f"verifying the last record: {trouble.cause}"))
        except RequestLost as lost:
            self._again(ticket, _Unresolved.of(_LOST, f"looking up the position: {lost}"))

    def _again(self, ticket: _Ticket, trouble: _Unresolved) -> None:
        """It could not be found this time."""
        if not ticket.is_current:
            return
        if trouble.refresh:
            self._source.refresh()
            self._destination.refresh()
        self._reset_position(ticket.partition, trouble.reason, trouble.detail, trouble.wait_seconds)

    # --- which record is next -----------------------------------------------------------------------------------------

    async def _find(self, ticket: _Ticket, state: LogState | Refusal) -> "Found | Unproven":
        if isinstance(state, Refusal):
            raise _refused(state)
        partition = ticket.partition
        on_foreign = partition.policy.on_foreign
        outcome: Found | Scan | Refused | Unproven = decision.from_leader(self._runs_now(partition), state, on_foreign)
        if isinstance(outcome, Scan):
            await self._until_replicated(ticket, state)
            tail = await self._scan(ticket, max(outcome.start, state.log_start), state.end)
            ticket.check()
            outcome = decision.from_tail(self._runs_now(partition), state.end, tail, on_foreign)
        if isinstance(outcome, Refused):
            raise _Unresolved(outcome.reason, outcome.detail, codes.wait_for(outcome.reason))
        return outcome

    async def _until_replicated(self, ticket: _Ticket, state: LogState) -> None:
        """A leader that has forgotten the link would take again what its followers do not have yet. So all that was in its
        log must be readable before anything is decided."""
        partition, readable, deadline = ticket.partition, state.high_watermark, self._loop.now + REPLICATION_SECONDS
        while readable < state.end:
            if self._loop.now > deadline:
                raise _Unresolved(
                    Reason.LOOKING_UP,
                    f"offsets {readable} to {state.end - 1} are not replicated yet, and may hold records of this link",
                    codes.SHORTLY_SECONDS,
                )
            await sleep(self._loop, _REPLICATION_POLL_SECONDS)
            ticket.check()
            answer = await high_watermark(self._loop, ticket.channel, (partition.destination, partition.number))
            ticket.check()
            if isinstance(answer, Refusal):
                raise _refused(answer)
            readable = answer

    async def _scan(self, ticket: _Ticket, start: int, end: int) -> Tail:
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
            raise _refused(Refusal(refused.code, "the tail of its log")) from refused

    def _remember_passed(self, partition: Partition, offset: int) -> None:
        """Write down that nothing of the link is in the copy between its newest checkpoint and this offset, so that the next
        look need not read that again. Only where others write: elsewhere the offset would be taken for ours."""
        runs = self.runs_of(partition)
        if partition.policy.on_foreign != "expect" or not runs:
            return
        checkpoint = decision.checkpoint_of(runs)
        run = covering(runs, checkpoint)
        if run.source_id == topic_id_text(partition.source_id) and destination_offset(run, checkpoint) < offset:
            position = locate(runs, checkpoint)
            base = {"sequence_base": checkpoint, "source_base": position, "destination_base": offset, "gaps": ""}
            self._notebook.write_run(run.model_copy(update=base | {"sequence_end": checkpoint}))

    # --- the map ------------------------------------------------------------------------------------------------------

    def _map_is_read(self, partition: Partition) -> Future[None]:
        """Done once the map is read up to the end that it has now."""
        standing: Future[None] = Future(self._loop)
        self._standing.append((partition, standing))
        return standing

    def _ask_for_the_maps_end(self) -> None:
        node = self._destination.leader(self._map_topic, 0).node
        channel = self._destination.prompt_channel(node) if node >= 0 else None
        if channel is None:
            self._destination.refresh()
            error = self._destination.topic_errors.get(self._map_topic, 0)
            trouble = (
                codes.name(error) if error else self._destination.trouble(node) if node >= 0 else "it has no leader"
            )
            for partition, _ in self._standing if trouble else ():
                reason = Reason.DESTINATION_LEADERLESS if node < 0 else Reason.DESTINATION_UNREACHABLE
                partition.reason, partition.detail = reason, f"the link's map, topic {self._map_topic}: {trouble}"
            return
        asked, self._standing = [standing for _, standing in self._standing], []
        self._asking = True
        run(self._read_the_map(channel, asked))

    async def _read_the_map(self, channel: Channel, asked: list[Future[None]]) -> None:
        trouble: Exception
        try:
            version = channel.version(API_KEY, VERSIONS)
            request = offsets_request(version, [(self._map_topic, 0)], LATEST)
            answers = offsets_of(await ask(self._loop, channel, request, ListOffsetsResponse))
            error, end = answers[self._map_topic, 0]
            if not error:
                self._reading.append((end, asked))
                return
            trouble = _refused(Refusal(error, f"the end of {self._map_topic}"))
        except RequestLost as lost:
            trouble = RequestLost(f"the end of {self._map_topic}: {lost}")
        finally:
            self._asking = False
        self._destination.refresh()
        for standing in asked:
            standing.fail(trouble)

    # --- where it goes on ---------------------------------------------------------------------------------------------

    async def _place(self, ticket: _Ticket, outcome: "Found | Unproven") -> None:
        partition = ticket.partition
        runs = self._runs_now(partition)
        found = outcome.found if isinstance(outcome, Unproven) else with_what_was_acknowledged(partition, outcome)
        sequence = found.sequence
        if contention.keeps_out(partition, sequence, self._loop.now):
            self.add(partition)
            return
        if isinstance(outcome, Unproven):
            self._place_unproven(ticket, runs, outcome)
            return
        if found.passed > destination_offset(covering(runs, sequence), sequence):
            self._remember_passed(partition, found.passed)
        if not any(run.source_id == topic_id_text(partition.source_id) for run in runs):
            partition.found(runs, sequence, None)  # another topic under the old name: it is copied from its start
            self._placed(partition, Placed(found, anew=True))
            return
        if partition.repetition is not None:
            repetition, partition.repetition = partition.repetition, None
            same = await is_repetition(self._loop, self._current_channel(ticket), partition, repetition)
            ticket.check()
            if (
                not same
            ):  # other records stand where ours were thought to be: ours are copied again, and all behind them
                partition.recopied += max(0, places(runs, sequence)[0] - repetition.first)
                partition.found(runs, sequence, repetition.first)
                self._placed(partition, Placed(found))
                return
        await self._verify(ticket, runs, found)

    def _place_unproven(self, ticket: _Ticket, runs: Sequence[Run], outcome: Unproven) -> None:
        """Rather copy some records again than skip any, if the policy lets the link do either."""
        partition = ticket.partition
        if partition.policy.on_loss == "halt":
            raise _Unresolved(Reason.POSITION_UNVERIFIED, outcome.detail, codes.wait_for(Reason.POSITION_UNVERIFIED))
        safe = locate(runs, decision.checkpoint_of(runs))
        partition.found(runs, outcome.found.sequence, safe)
        unproven = Reason.POSITION_UNVERIFIED, outcome.detail, outcome.gone
        self._placed(partition, Placed(outcome.found, unproven=unproven))

    async def _verify(self, ticket: _Ticket, runs: Sequence[Run], found: Found) -> None:
        """Compare the last record with the source record that the map names; if it is another one, with those that the map
        has named before: of two writers that read differently one may have written last."""
        partition, sequence = ticket.partition, found.sequence
        position = places(runs, sequence)[0]
        begun = [run for run in runs if run.sequence_base < sequence]
        if not begun:  # nothing was copied yet, or what was is no longer in the map
            partition.found(runs, sequence, position)
            self._placed(partition, Placed(found))
            return
        at = (
            found.last_offset
            if found.last_offset >= 0
            else destination_offset(covering(begun, sequence - 1), sequence - 1)
        )
        copied = await self._copied(ticket, sequence - 1, at, search=found.last_offset < 0)
        behind = candidates(begun, sequence)
        different = copied is DIFFERENT
        for one in behind:
            if not isinstance(copied, Copied):
                break
            verified = await self._compare(ticket, copied, one - 1)
            if verified.verdict is Verdict.SAME:
                partition.found(runs, sequence, position if one == behind[0] else one)
                partition.prove(verified.epoch)
                self._placed(partition, Placed(found))
                return
            different |= verified.verdict is Verdict.DIFFERENT
        await self._place_unverified(ticket, runs, found, behind, different=different)

    async def _place_unverified(
        self, ticket: _Ticket, runs: Sequence[Run], found: Found, behind: Sequence[int], *, different: bool
    ) -> None:
        """No record confirms the position: the record is gone on one side, or it is another one."""
        partition, sequence = ticket.partition, found.sequence
        position = places(runs, sequence)[0]
        confirmed = any(run.sequence_base <= run.sequence_end == sequence for run in runs)
        if not different and (confirmed or (len(behind) == 1 and not partition.policy.source_compacted)):
            # The writer itself has confirmed it; or the broker knows the number, and the map, written ahead, just one place.
            partition.found(runs, sequence, position)
            self._placed(partition, Placed(found))
            return
        if partition.policy.source_compacted:
            partition.found(runs, sequence, self._repeat(partition, runs, sequence, behind))
            self._placed(partition, Placed(found))
            return
        truncated_at = await self._truncated_at(ticket, runs, sequence, position) if different else -1
        if truncated_at >= 0:
            partition.found(runs, sequence, position)
            self._placed(partition, Placed(found, truncated_at=truncated_at))
            return
        last = destination_offset(covering(runs, sequence), sequence) - 1
        reason = Reason.COPY_DIFFERS if different else Reason.POSITION_UNVERIFIED
        what = "is not the source's record" if different else "cannot be compared with the source's record"
        detail = f"the last record copied, number {sequence - 1} at destination offset {last}, {what} at {position - 1}"
        if partition.policy.on_loss == "halt":
            raise _Unresolved(reason, detail, codes.wait_for(reason))
        safe = self._repeat(partition, runs, sequence, behind) if partition.policy.on_loss == "restart" else position
        partition.found(runs, sequence, safe)
        self._placed(partition, Placed(found, unproven=(reason, detail, (last, last + 1))))

    async def _truncated_at(self, ticket: _Ticket, runs: Sequence[Run], sequence: int, position: int) -> int:
        """Where the source's log, as of the newest checkpoint's leader epoch, ends now, if that is below the position."""
        partition = ticket.partition
        checkpoint = max(runs, key=lambda run: run.sequence_end)
        if checkpoint.source_epoch < 0 or checkpoint.sequence_end > sequence:
            return -1
        key = partition.topic, partition.number
        try:
            answers = await log_ends(self._loop, self._source_channel(partition), {key: checkpoint.source_epoch})
        except RequestLost as lost:
            raise Unreadable(codes.Answer(Reason.SOURCE_UNREACHABLE, codes.SOON_SECONDS), str(lost)) from lost
        ticket.check()
        error, end = answers.get(key, (0, -1))
        if error:
            raise Unreadable(codes.answer(codes.FETCH, error, Reason.SOURCE_UNREACHABLE), codes.name(error))
        return end if 0 <= end < position else -1

    def _repeat(self, partition: Partition, runs: Sequence[Run], sequence: int, behind: Sequence[int]) -> int:
        """Where to go on when no record tells: rather copy some again than skip any."""
        checkpoints = [run.sequence_end for run in runs if run.sequence_base <= run.sequence_end <= sequence]
        checkpoint = max(checkpoints, default=runs[0].sequence_base)
        safe = min(*behind, locate(runs, checkpoint))
        partition.recopied += max(0, behind[0] - safe)
        return safe

    def verify(self, partition: Partition, decided: Callable[[int | None], None]) -> None:
        """Find out whether the last record that was copied is at its place in the source still: ``decided`` gets its leader
        epoch there, or None. Not called if the position is reset meanwhile."""
        run(self._verify_running(partition, partition.generation, decided))

    async def _verify_running(
        self, partition: Partition, generation: int, decided: Callable[[int | None], None]
    ) -> None:
        last, position = partition.acked_sequence - 1, partition.copied_to
        epoch = None
        try:
            node = partition.destination_node
            channel = self._destination.prompt_channel(node)
            if channel is None:
                raise Unreadable(
                    codes.Answer(Reason.DESTINATION_UNREACHABLE, codes.SHORTLY_SECONDS), "its leader cannot be reached"
                )
            ticket = _Ticket(partition, generation, channel)
            copied = await self._copied(ticket, last, last + partition.shift, search=True, running=True)
            if isinstance(copied, Copied):
                verified = await self._compare(ticket, copied, position - 1, running=True)
                epoch = verified.epoch if verified.verdict is Verdict.SAME else None
        except _Superseded:
            return
        except Unreadable as trouble:
            if partition.generation == generation and not partition.retired:
                self._source.refresh()
                self._destination.refresh()
                detail = f"verifying the last record: {trouble.cause}"
                self._reset_position(partition, trouble.answer.reason, detail, trouble.answer.wait_seconds)
            return
        decided(epoch)

    async def _copied(
        self, ticket: _Ticket, number: int, offset: int, *, search: bool, running: bool = False
    ) -> Copied | Verified:
        """The record with this number in the copy, which is expected at ``offset``."""
        partition = ticket.partition
        producer = self._producer_id, wire_sequence(number)
        among_others = search and partition.policy.on_foreign != "halt"
        channel = ticket.channel if running else self._current_channel(ticket)
        copied = await read_copied(self._loop, channel, partition, producer, offset, search=among_others)
        self._check(ticket, running)
        return copied

    async def _compare(self, ticket: _Ticket, copied: Copied, source_at: int, *, running: bool = False) -> Verified:
        verified = await compare(
            self._loop, self._source_channel(ticket.partition), ticket.partition, copied, source_at
        )
        self._check(ticket, running)
        return verified

    def _check(self, ticket: _Ticket, running: bool) -> None:
        partition = ticket.partition
        if not running:
            ticket.check()
        elif partition.generation != ticket.generation or partition.retired:
            raise _Superseded

    def _current_channel(self, ticket: _Ticket) -> Channel:
        channel = self._destination.prompt_channel(ticket.partition.destination_node)
        if channel is None:
            answer = codes.Answer(Reason.DESTINATION_UNREACHABLE, codes.SHORTLY_SECONDS)
            raise Unreadable(answer, "the destination's leader cannot be reached")
        return channel

    def _source_channel(self, partition: Partition) -> Channel:
        channel = self._source.channel(self._source.leader(partition.topic, partition.number).node)
        if channel is None:
            answer = codes.Answer(Reason.SOURCE_UNREACHABLE, codes.SHORTLY_SECONDS)
            raise Unreadable(answer, "the source's leader cannot be reached")
        return channel

    def runs_of(self, partition: Partition) -> Sequence[Run]:
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

    def _runs_now(self, partition: Partition) -> Sequence[Run]:
        runs = self.runs_of(partition)
        if not runs:
            reason = Reason.MAP_RUN_MISSING
            raise _Unresolved(reason, "the map has no run for these two topics", codes.wait_for(reason))
        return runs


def _refused(refusal: Refusal) -> _Unresolved:
    answer = codes.answer(codes.PRODUCE, refusal.code, Reason.DESTINATION_UNREACHABLE)
    return _Unresolved.of(answer, f"looking up {refusal.what}: {codes.name(refusal.code)}")


def with_what_was_acknowledged(partition: Partition, found: Found) -> Found:
    """What this slot itself knows to be acknowledged is lost too where it is no more: no checkpoint may say so yet. What was
    only found in the log does not count, since its followers may not have had it."""
    if not partition.found_sequence < partition.acked_sequence > found.sequence:
        return found
    start, end = found.lost or (found.sequence + partition.shift, 0)
    return found._replace(lost=(start, max(end, partition.expected_offset)))
