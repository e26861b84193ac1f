"""Determines the source position of the next record from its number: the last record copied is compared with the source
record that the map names."""

from collections.abc import Sequence
from typing import NamedTuple

from strait.engine.partition.partition import Partition, Ticket
from strait.engine.partition.position import Repetition
from strait.engine.recovery import decision
from strait.engine.recovery.decision import Found, Unproven
from strait.engine.recovery.known_runs import KnownRuns
from strait.engine.recovery.producer_state import log_ends
from strait.engine.recovery.turns import Turns
from strait.engine.recovery.unresolved import Unresolved
from strait.engine.recovery.verification import (
    DIFFERENT,
    Copied,
    CopyMissing,
    Unreadable,
    Verdict,
    Verified,
    compare,
    is_repetition,
    read_copied,
)
from strait.net import error_policy
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.combined_reads import CombinedReads, NotShown
from strait.net.event_loop import Loop
from strait.net.tasks import RequestLost
from strait.reasons import Reason
from strait.state.offset_map import (
    candidates,
    covering,
    destination_offset,
    locate,
    newest_checkpoint,
    places,
    source_position,
    wire_sequence,
)
from strait.state.schema import OffsetMapping

AT_ONCE = 256
"""Partitions that verify at a time, by combined requests: each holds a destination batch of up to SHARE_BYTES, outside
the slot's memory budget."""
ALONE_AT_ONCE = 16
"""The same for partitions with larger batches, which are read one by one and held whole."""


class Placed(NamedTuple):
    """Result of positioning a partition.

    Attributes:
        found: outcome of the destination's lookup.
        ``anew``: it starts with the first record of a source topic that replaced another.
        truncated_at: source offset at which the source's log was truncated, below the position; -1 if it was not.
        unproven: why the position is not proven: reason code, detail, and the affected destination offsets. The
            topic's policy lets replication continue nevertheless.
        last_offset: destination offset at which the link's last record was seen; -1 if it was not. ``last_seen``: its
            source offset and leader epoch, if it was compared.
    """

    found: Found
    anew: bool = False
    truncated_at: int = -1
    unproven: "tuple[Reason, str, tuple[int, int]] | None" = None
    last_offset: int = -1
    last_seen: tuple[int, int] | None = None


class _Match(NamedTuple):
    """Result of comparing the last record.

    Attributes:
        place: source position after the record that is equal; -1 if none is.
        epoch: the source's leader epoch of that record.
        different: both sides hold a record, and they differ.
        places: source positions that the map names, the most likely first.
        ``gone``: the destination does not hold the record.
        offset: the record's destination offset; -1 if it was not read.
    """

    place: int
    epoch: int
    different: bool
    places: Sequence[int]
    gone: bool = False
    offset: int = -1


class Placement:
    """Compares the last records of partitions, a limited number at a time."""

    def __init__(
        self,
        loop: Loop,
        source: ClusterClient,
        destination: ClusterClient,
        producer_id: int,
        runs: KnownRuns,
    ) -> None:
        self._loop = loop
        self._source = source
        self._destination = destination
        self._producer_id = producer_id
        self._runs = runs
        self._together = CombinedReads(loop)
        self._turns = Turns(loop, AT_ONCE)
        self._turns_alone = Turns(loop, ALONE_AT_ONCE)
        self._alone: set[Ticket] = set()  # of partitions that verify now by separate requests

    async def place(self, ticket: Ticket, outcome: "Found | Unproven", log_start: int = -1) -> Placed:
        """Set the partition's position. Raises Superseded, Unresolved, Unreadable, RequestLost.

        Args:
            log_start: the destination's, if its whole log from there on can be searched for the last record; else -1.

        Raises:
            CopyMissing: the last record must be on the destination, and is not; only with ``log_start``.
        """
        partition, runs = ticket.partition, self._runs.needed(ticket.partition)
        found = outcome.found if isinstance(outcome, Unproven) else outcome
        if not any(run.source_id == partition.ids[0] for run in runs):
            partition.found(runs, found.sequence, None)  # another topic under the old name: copied from its start
            return Placed(found, anew=True)
        if isinstance(outcome, Unproven):
            return self._place_unproven(partition, runs, outcome)
        alone = ticket in self._alone
        turns = self._turns_alone if alone else self._turns
        await turns.take()
        try:
            ticket.check()
            repetition = partition.position.repetition
            if repetition is not None and not await self._is_ours(ticket, repetition):
                partition.position.recopy(places(runs, found.sequence)[0] - repetition.first)
                partition.found(runs, found.sequence, repetition.first)
                return Placed(found)
            return self._located(partition, await self._verify(ticket, runs, found, log_start))
        except NotShown:
            self._alone.add(ticket)
        finally:
            turns.end()
            if alone:
                self._alone.discard(ticket)
        return await self.place(ticket, outcome, log_start)

    async def running(self, ticket: Ticket) -> "tuple[int, int] | None":
        """Return the source position after the last acknowledged record, and that record's leader epoch; None if the
        source no longer holds the record. Raises Superseded, Unreadable."""
        partition, position = ticket.partition, ticket.partition.position
        sequence, copied_to = position.acked_sequence, position.copied_to
        runs = [run for run in self._runs.needed(partition) if run.sequence_base < sequence]
        named = list(dict.fromkeys([copied_to, *(candidates(runs, sequence) if runs else ())]))
        await self._turns_alone.take()
        try:
            ticket.check()
            self._alone.add(ticket)
            match = await self._match(ticket, sequence, sequence - 1 + position.shift, named, search=True)
        finally:
            self._turns_alone.end()
            self._alone.discard(ticket)
        return None if match.place < 0 else (match.place, match.epoch)

    def _reads(self, ticket: Ticket) -> CombinedReads | None:
        return None if ticket in self._alone else self._together

    async def _is_ours(self, ticket: Ticket, repetition: Repetition) -> bool:
        """Return whether the batch that the broker reported as a duplicate is the one that was sent. If not, ours and
        all after it are copied again."""
        same = await is_repetition(self._loop, self._copy_channel(ticket), ticket.partition, repetition)
        ticket.check()
        ticket.partition.position.repetition_settled()
        return same

    def _place_unproven(self, partition: Partition, runs: Sequence[OffsetMapping], outcome: Unproven) -> Placed:
        """Copy some records again rather than skip any, if the policy permits either."""
        if partition.policy.on_loss == "halt":
            raise Unresolved.until_decided(Reason.POSITION_UNVERIFIED, outcome.detail)
        partition.found(runs, outcome.found.sequence, locate(runs, decision.checkpoint_of(runs)))
        unproven = Reason.POSITION_UNVERIFIED, outcome.detail, outcome.gone
        return Placed(outcome.found, unproven=unproven)

    async def _verify(self, ticket: Ticket, runs: Sequence[OffsetMapping], found: Found, log_start: int) -> Placed:
        """Compare the last record with the source record that the map names; if that differs, with those that earlier
        map entries name: of two writers that read the source differently, either may have written last."""
        partition, sequence = ticket.partition, found.sequence
        position = places(runs, sequence)[0]
        begun = [run for run in runs if run.sequence_base < sequence]
        if not begun:  # nothing was copied yet, or the map no longer covers it
            partition.found(runs, sequence, position)
            return Placed(found)
        expected = destination_offset(covering(begun, sequence - 1), sequence - 1)
        seen = found.last_offset >= 0
        named = candidates(begun, sequence)
        match = await self._match(ticket, sequence, found.last_offset if seen else expected, named, search=not seen)
        searched = log_start >= 0 and not seen
        policy = partition.policy
        if (
            searched
            and match.gone
            and decision.is_missing(expected, log_start, policy.on_foreign, compacted=policy.source_compacted)
        ):
            raise CopyMissing
        last_offset = max(match.offset, found.last_offset)
        if match.place < 0:
            placed = await self._place_unverified(ticket, runs, found, match)
            return placed._replace(last_offset=last_offset)
        # After that record there may be many offsets without a record to copy, even across leader elections: the
        # position is after them, and the record's epoch then is not that of the offsets before the position.
        partition.found(runs, sequence, position if match.place == named[0] else match.place)
        if partition.cursor.offset == match.place:
            partition.cursor.prove(match.epoch)
        return Placed(found, last_offset=last_offset, last_seen=(match.place - 1, match.epoch))

    def _located(self, partition: Partition, placed: Placed) -> Placed:
        """Set the offset at which the last record was seen: among records of other producers the map only has its
        offset at the time of the checkpoint."""
        if placed.last_offset >= 0 and partition.policy.on_foreign != "halt":
            partition.position.located_at(placed.last_offset, placed.last_seen)
        return placed

    async def _match(
        self,
        ticket: Ticket,
        sequence: int,
        offset: int,
        named: Sequence[int],
        *,
        search: bool,
    ) -> _Match:
        """Compare record number ``sequence - 1``, expected at destination offset ``offset``, with the source records
        that end before the positions ``named``."""
        partition = ticket.partition
        producer = self._producer_id, wire_sequence(sequence - 1)
        among_others = search and partition.policy.on_foreign != "halt"
        copied = await read_copied(
            self._loop,
            self._copy_channel(ticket),
            partition,
            producer,
            offset,
            search=among_others,
            together=self._reads(ticket),
        )
        ticket.check()
        if not isinstance(copied, Copied):
            return _Match(-1, -1, copied is DIFFERENT, named, gone=copied is not DIFFERENT)
        different = False
        for place in named:
            verified = await self._compare(ticket, copied, place - 1)
            if verified.verdict is Verdict.SAME:
                return _Match(place, verified.epoch, different, named, offset=copied.offset)
            different |= verified.verdict is Verdict.DIFFERENT
        return _Match(-1, -1, different, named, offset=copied.offset)

    async def _place_unverified(
        self, ticket: Ticket, runs: Sequence[OffsetMapping], found: Found, match: _Match
    ) -> Placed:
        """Set a position that no record confirms: the record was deleted on one side, or it is another one."""
        partition, sequence, policy = ticket.partition, found.sequence, ticket.partition.policy
        position = places(runs, sequence)[0]
        truncated_at = await self._truncated_at(ticket, runs, sequence, position, different=match.different)
        if truncated_at >= 0:
            partition.found(runs, sequence, position)
            return Placed(found, truncated_at=truncated_at)
        enough = decision.map_is_enough(runs, sequence, len(match.places), compacted=policy.source_compacted)
        if enough and not match.different:
            partition.found(runs, sequence, position)
            return Placed(found)
        if policy.source_compacted:
            partition.found(runs, sequence, self._repeat(partition, runs, sequence, match.places))
            return Placed(found)
        last = destination_offset(covering(runs, sequence), sequence) - 1
        reason = Reason.COPY_DIFFERS if match.different else Reason.POSITION_UNVERIFIED
        what = "is not the source's record" if match.different else "cannot be compared with the source's record"
        detail = f"the last record copied, number {sequence - 1} at destination offset {last}, {what} at {position - 1}"
        if policy.on_loss == "halt":
            raise Unresolved.until_decided(reason, detail)
        partition.found(runs, sequence, self._repeat(partition, runs, sequence, match.places))
        return Placed(found, unproven=(reason, detail, (last, last + 1)))

    async def _truncated_at(
        self, ticket: Ticket, runs: Sequence[OffsetMapping], sequence: int, position: int, *, different: bool
    ) -> int:
        """Return the source offset at which the source's log was truncated below the position; -1 if it was not.

        If the leader epoch of the newest checkpoint ends before the checkpoint's own position, the log was truncated
        there. If it ends between that and the position, either the log was truncated there, or another leader followed
        without a loss: the first destination record from there on then differs from the source's, or equals it.
        """
        checkpoint = newest_checkpoint(runs)
        if checkpoint.source_epoch < 0 or checkpoint.sequence_end > sequence:
            return -1
        partition = ticket.partition
        key = partition.source_place
        try:
            answers = await log_ends(self._loop, self._source_channel(partition), {key: checkpoint.source_epoch})
        except RequestLost as lost:
            raise Unreadable(
                error_policy.Answer(Reason.SOURCE_UNREACHABLE, error_policy.SOON_SECONDS), str(lost)
            ) from lost
        ticket.check()
        error, end = answers.get(key, (0, -1))
        if error:
            raise Unreadable(
                error_policy.answer(error_policy.FETCH, error, Reason.SOURCE_UNREACHABLE), error_policy.name(error)
            )
        if not 0 <= end < position:
            return -1
        if end < source_position(checkpoint, checkpoint.sequence_end):
            return end
        if not different:
            return -1
        first = decision.first_record_from(runs, checkpoint.sequence_end, sequence, end)
        offset = destination_offset(covering(runs, first), first)
        place = locate(runs, first + 1)
        match = await self._match(ticket, first + 1, offset, [place], search=True)
        return end if match.place < 0 and match.different else -1

    def _repeat(self, partition: Partition, runs: Sequence[OffsetMapping], sequence: int, named: Sequence[int]) -> int:
        """Return the position to resume at if no record confirms one: copy some records again rather than skip any."""
        checkpoints = [run.sequence_end for run in runs if run.sequence_base <= run.sequence_end <= sequence]
        checkpoint = max(checkpoints, default=runs[0].sequence_base)
        safe = min(*named, locate(runs, checkpoint))
        partition.position.recopy(named[0] - safe)
        return safe

    async def _compare(self, ticket: Ticket, copied: Copied, source_at: int) -> Verified:
        partition = ticket.partition
        channel, together = self._source_channel(partition), self._reads(ticket)
        verified = await compare(self._loop, channel, partition, copied, source_at, together)
        ticket.check()
        return verified

    def _copy_channel(self, ticket: Ticket) -> Channel:
        channel = self._destination.prompt_channel(ticket.partition.queue.node)
        if channel is None:
            answer = error_policy.Answer(Reason.DESTINATION_UNREACHABLE, error_policy.SHORTLY_SECONDS)
            raise Unreadable(answer, "the destination's leader cannot be reached")
        return channel

    def _source_channel(self, partition: Partition) -> Channel:
        channel = self._source.quiet_channel(self._source.leader(*partition.source_place).node)
        if channel is None:
            answer = error_policy.Answer(Reason.SOURCE_UNREACHABLE, error_policy.SHORTLY_SECONDS)
            raise Unreadable(answer, "the source's leader cannot be reached")
        return channel
