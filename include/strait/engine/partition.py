"""One partition on its way: where it stands, what is queued, and why it does not move when it does not.

Two kinds of trouble are kept apart. *Doubt* concerns the destination: what was sent may or may not be there, so what is
queued is dropped and the position is looked up on the destination again, the one recovery path. *Blocked* concerns the
source: nothing more can be fetched for now, but what is queued is good and still goes out.
"""

import zlib
from bisect import insort
from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import Literal, NamedTuple

from strait.model import topic_id_text
from strait.net.buffers import Buffer
from strait.reasons import Reason
from strait.state.offset_map import (
    Gap,
    covering,
    destination_offset,
    gaps_of,
    locate,
    source_position,
)
from strait.state.schema import OffsetMapping, PartitionReport, TopicPolicy

PROOF_SECONDS = 5.0
"""A broker that has forgotten a producer takes any sequence from it. So unless this partition was acknowledged within
this time, its next batch goes alone: were it refused and its successor taken, its records would be lost."""
_HOLD_SECONDS = 30.0  # at most; whoever is asked then answers or is given up long before

BATCH_OVERHEAD_BYTES = 1 << 10
"""What a queued batch costs besides its bytes: objects that hold it. With one record in a batch that is most of it."""


PASSED_OFFSETS = 100
"""Where that many offsets behind the last record hold nothing to copy, the map is told to begin behind them, or each
start would read them all again. A source that holds little else than copies is the usual case."""


class Phase(Enum):
    AWAIT_POSITION = "position unknown; will be looked up when nothing is in flight"
    RESOLVING = "position is being looked up on the destination"
    REPLICATING = "position known; copying"


class Repetition(NamedTuple):
    """A batch of ours was taken for a repetition of one that is already there, at this destination offset. The broker
    compares numbers only: of a source that is being compacted, another copy may have read other records there.
    ``first`` is the source offset of the first one in ours. Elsewhere both have read the same log, so the last record
    there tells (`verification`), and the same records may well have other bytes."""

    offset: int
    crc: int
    first: int


class OutBatch(NamedTuple):
    """A restamped batch, ready to send.

    ``generation`` tells batches from before a doubt from those after it; ``position``: the source offset behind its
    last record; ``promise``: the last thing that must be written down before it may go out, 0 for none; ``tailing``: it
    came while there was nothing older to catch up with; ``crc``: its own, 0 where nobody will ask.
    """

    partition: "Partition"
    generation: int
    view: memoryview
    buffer: Buffer
    sequence: int
    records: int
    first: int
    position: int
    promise: int
    source_crcs: bytes
    epoch: int
    max_timestamp_ms: int
    tailing: bool
    crc: int = 0


class Partition:
    """State of one source partition and its copy. Offsets are the next ones; counts and bytes are of this epoch."""

    __slots__ = (
        "_acked_source", "_open_promises", "_promises", "_told", "acked_epoch", "acked_sequence", "apart", "aside",
        "batches", "blocked_until", "bytes", "checked_to", "checkpoint_sequence", "claims", "conflicts",
        "destination", "destination_id", "destination_log_start", "destination_node", "detail", "digest", "end",
        "epoch_unproven", "failures", "first_offset", "first_sequence", "first_source", "forgettable",
        "found_sequence", "generation", "held", "in_flight", "last_ack_at", "last_epoch", "last_timestamp_ms",
        "left_out", "line", "log_start", "loss_noted", "mapped", "max_batch_bytes", "number", "passed", "phase",
        "policy", "position", "queue", "queued_bytes", "reason", "recopied", "records", "recoveries", "repetition",
        "retired", "retry_at", "run", "scheduled", "sent_sequence", "sequence", "shift", "source_id",
        "source_leader_epoch", "topic", "watched",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        number: int,
        destination: str,
        source_id: bytes,
        destination_id: bytes,
        policy: TopicPolicy,
    ) -> None:
        self.topic = topic
        self.number = number
        self.destination = destination
        self.source_id = source_id
        self.destination_id = destination_id
        self.policy = policy
        self.phase = Phase.AWAIT_POSITION
        self.generation = 0
        self.retired = False
        self.retry_at = 0.0
        self.failures = 0
        self.blocked_until = 0.0
        self.held = False  # for a moment, with nothing wrong; counts only while it is blocked
        self.reason: Reason | None = None
        self.detail = ""
        # where it stands
        self.position = -1  # next source offset to fetch
        self.mapped = -1  # where the source goes on, as the map says it; -1: the map does not say it yet
        self.sequence = -1  # number of the next record to stamp
        self.shift = 0  # destination offset of a record less its number
        self.acked_sequence = -1  # all records before it are acknowledged
        self.found_sequence = -1  # what the last look-up found
        self._acked_source = -1  # the source offset behind the last of them
        self.first_sequence = -1  # these three when they were first known, for the ledger
        self.first_source = -1
        self.first_offset = -1
        self.checkpoint_sequence = -1
        self.source_leader_epoch = -1  # as its metadata has last said
        self.last_epoch = -1  # the source's leader epoch of what lies before `position`; -1: not known exactly
        self.epoch_unproven = False  # it is from the map, and records of a later epoch may have been copied since
        self.acked_epoch = -1  # of the last acknowledged record
        self.end = -1  # the source's last stable offset as last seen
        self.log_start = -1  # the source's, as last seen
        self.destination_log_start = -1
        # what the map says of it
        self.repetition: Repetition | None = None  # to be looked into before anything else is copied
        self.run: OffsetMapping | None = None  # says where the acknowledged records are
        self.claims: deque[OffsetMapping] = deque()  # runs that begin later, by sequence_base
        self.passed: OffsetMapping | None = None  # says that nothing is to be copied before the present position
        self._told: deque[Gap] = deque()  # what the map said at the last look-up of records from `sequence` on
        self._promises = 0
        self._open_promises: list[int] = []
        # what the destination refuses
        self.max_batch_bytes = policy.max_message_bytes
        self.apart = (0, 0)  # source offsets [from, to) that are sent one by one
        self.aside: dict[int, tuple[Reason, str]] = {}  # source offset -> why it goes to quarantine
        self.checked_to = 0  # before this source offset checksums are checked here, too
        self.loss_noted: tuple[Reason, tuple[int, int]] | None = None
        # how it keeps out of another copy's way, see strait.engine.recovery.contention
        self.forgettable = False  # it holds records so old that the destination may forget us at any moment
        self.sent_sequence = -1  # no record from here on was ever sent by us; -1: another copy has been found writing
        self.watched = -1  # what the look-up before found, while we wait to see whether another copy writes
        # on its way
        self.destination_node = -1
        self.line = 0  # of those to that broker; all its batches keep to it, so that they stay in order
        self.queue: deque[OutBatch] = deque()
        self.queued_bytes = 0
        self.in_flight = 0
        self.scheduled = False
        self.last_ack_at = float("-inf")
        # what it did
        self.records = 0
        self.batches = 0
        self.bytes = 0
        self.digest = 0
        self.conflicts = 0
        self.recoveries = 0
        self.recopied = 0
        self.left_out = 0
        self.last_timestamp_ms = -1

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"

    def found(self, runs: Sequence[OffsetMapping], sequence: int, position: int | None) -> None:
        """The destination says which record is next and the map where it comes from: go on from there.

        ``position`` may be another than what the map says, where records are copied again; None begins with the
        source's first record. A new run will then say so.
        """
        self.run = covering(runs, sequence)
        self.claims = deque(run for run in runs if run.sequence_base > sequence)
        self.passed = None
        self._told = deque(sorted({gap for run in runs for gap in gaps_of(run, sequence)}))
        self.sequence = self.acked_sequence = self.found_sequence = self.sent_sequence = sequence
        self.shift = destination_offset(self.run, sequence) - sequence
        self.position = self._acked_source = position or 0
        self.mapped = self.position if position is not None and locate(runs, sequence) == position else -1
        if self.first_sequence < 0:
            self.first_sequence, self.first_source = sequence, self.position
            self.first_offset = sequence + self.shift
        self.checkpoint_sequence = max(self.checkpoint_sequence, self.run.sequence_end)
        self.acked_epoch = self.last_epoch = -1
        if self.mapped >= 0:
            checkpoint = max(runs, key=lambda run: (run.sequence_end, run.sequence_base, -run.source_base))
            if checkpoint.sequence_end <= sequence:
                self.acked_epoch = self.last_epoch = checkpoint.source_epoch
        self.epoch_unproven = True
        self.release()  # who was asked meanwhile may never answer
        self.phase = Phase.REPLICATING
        self.last_ack_at = float("-inf")  # the first batch goes alone

    def prove(self, epoch: int) -> None:
        """This is the source's leader epoch of what lies before the position."""
        self.last_epoch, self.epoch_unproven = epoch, False

    def told(self, behind: int) -> list[Gap]:
        """What the map says already of the records from the next one to number ``behind``, right or wrong. Once
        each."""
        said = []
        while self._told and self._told[0].sequence < behind:
            said.append(self._told.popleft())
        return said

    def claim(self, run: OffsetMapping) -> None:
        """A run of ours, written ahead; it is in force once its first record is acknowledged."""
        insort(self.claims, run, key=lambda claim: claim.sequence_base)

    def promise(self) -> int:
        """Something must be written down before what comes next may go out."""
        self._promises += 1
        self._open_promises.append(self._promises)
        return self._promises

    def kept(self, promise: int) -> None:
        """It is written."""
        if promise in self._open_promises:
            self._open_promises.remove(promise)

    @property
    def last_promise(self) -> int:
        """What a batch that is made now has to wait for; 0 where nothing was ever promised."""
        return self._promises

    def reset_position(self, reason: Reason | None, detail: str, retry_at: float) -> None:
        """Forget what is queued and in flight; the position is looked up again at ``retry_at`` or later."""
        self.phase = Phase.AWAIT_POSITION
        self.generation += 1
        self.retry_at = retry_at
        self.failures += 1
        if reason is not None:
            self.reason, self.detail = reason, detail
        if self._open_promises:
            self.loss_noted = None  # it may be what could not be written; told again it is the same entry
        self._open_promises.clear()
        self.drop_queue()

    def block(self, reason: Reason, detail: str, until: float) -> None:
        """Fetch nothing until then."""
        self.reason, self.detail, self.blocked_until, self.held = reason, detail, until, False

    def hold(self, now: float) -> None:
        """Fetch nothing until something is known that is being asked for, though nothing is wrong."""
        self.held, self.blocked_until = True, now + _HOLD_SECONDS

    def release(self) -> None:
        """It is known."""
        if self.held:
            self.held, self.blocked_until = False, 0.0

    def unblock(self) -> None:
        """Fetch again at once."""
        self.blocked_until = 0.0
        self.clear()

    def jump(self, position: int) -> None:
        """Go on at another source offset; the map will say so before anything behind is sent."""
        self.position = position
        self.last_epoch = -1
        if position < self.mapped:
            self.mapped = -1
        self.unblock()

    def obey(self, policy: TopicPolicy) -> None:
        """Take up a policy that may have changed; what waits for a decision is tried again at once."""
        if policy != self.policy:
            self.policy = policy
            self.max_batch_bytes = policy.max_message_bytes
            self.blocked_until = self.retry_at = 0.0

    def enqueue(self, batch: OutBatch) -> None:
        self.queue.append(batch)
        self.queued_bytes += len(batch.view) + BATCH_OVERHEAD_BYTES

    def dequeue(self) -> OutBatch:
        batch = self.queue.popleft()
        self.queued_bytes -= len(batch.view) + BATCH_OVERHEAD_BYTES
        self.sent_sequence = batch.sequence + batch.records
        return batch

    def drop_queue(self) -> None:
        for batch in self.queue:
            batch.buffer.release()
        self.queue.clear()
        self.queued_bytes = 0

    def may_send(self, now: float) -> bool:
        """Whether a queued batch may go out now; see PROOF_SECONDS."""
        if not self.queue or (self._open_promises and self.queue[0].promise >= self._open_promises[0]):
            return False
        return self.in_flight == 0 or now - self.last_ack_at < PROOF_SECONDS

    def acked(self, batch: OutBatch, now: float) -> None:
        self.acked_sequence = batch.sequence + batch.records
        self._acked_source = batch.position
        self.acked_epoch = batch.epoch
        while self.claims and self.claims[0].sequence_base < self.acked_sequence:
            self.run = self.claims.popleft()
        if self.apart[1] and batch.position >= self.apart[1]:
            self.apart = (0, 0)
        for offset in [offset for offset in self.aside if offset < batch.position]:
            del self.aside[offset]
        self.last_ack_at = now
        self.failures = 0
        self.records += batch.records
        self.batches += 1
        self.bytes += len(batch.view)
        self.digest = zlib.crc32(batch.source_crcs, self.digest)  # so the order of batches matters
        self.last_timestamp_ms = batch.max_timestamp_ms
        self.clear()

    def checkpoint(self, at_ms: int) -> OffsetMapping | None:
        """The run that confirms what is acknowledged; None while there is nothing to confirm.

        That is the run in force, or, where another writer's word would be taken for ours, one that begins with the last
        acknowledged record.
        """
        if self.run is None or self.run.source_id != topic_id_text(self.source_id):
            return None
        said = source_position(self.run, self.acked_sequence), destination_offset(self.run, self.acked_sequence)
        confirmed = {
            "sequence_end": self.acked_sequence,
            "checkpoint_at_ms": at_ms,
            "source_epoch": self.acked_epoch,
        }
        if said == (self._acked_source, self.expected_offset):
            return self.run.model_copy(update=confirmed)
        if self.acked_sequence == self.found_sequence:
            return None
        return self.run.model_copy(
            update=confirmed
            | {
                "sequence_base": self.acked_sequence - 1,
                "source_base": self._acked_source - 1,
                "destination_base": self.expected_offset - 1,
                "gaps": "",
            }
        )

    def pass_over(self, at_ms: int) -> OffsetMapping | None:
        """The run that lets reading begin at the present position; None unless that spares much. It is the truth for
        every writer of the link: what is left out is so for all of them."""
        at_rest = self.phase is Phase.REPLICATING and self.sequence == self.acked_sequence and not self._open_promises
        before = self._acked_source if self.passed is None else max(self._acked_source, self.passed.source_base)
        if self.run is None or not at_rest or self.position - before < PASSED_OFFSETS:
            return None
        if self.run.source_id != topic_id_text(self.source_id):
            return None
        self.passed = self.run.model_copy(
            update={
                "sequence_base": self.acked_sequence,
                "source_base": self.position,
                "destination_base": self.expected_offset,
                "gaps": "",
                "sequence_end": self.acked_sequence,
                "checkpoint_at_ms": at_ms,
                "source_epoch": self.last_epoch,
            }
        )
        return self.passed

    def clear(self) -> None:
        """Nothing is wrong any more, unless the source still blocks."""
        self.failures = 0
        if self.blocked_until == 0.0:
            self.reason, self.detail = None, ""

    @property
    def awaits_word(self) -> bool:
        """The source must say how it is with it, though there be no news: nothing is known yet, or something was
        wrong."""
        return self.end < 0 or self.reason is not None

    @property
    def untried(self) -> bool:
        """Nothing was sent since the last look-up."""
        return self.in_flight == 0 and self.acked_sequence == self.found_sequence

    @property
    def acked_position(self) -> int:
        """All source offsets before it are acknowledged or hold nothing to copy; -1 before the first look-up."""
        if self.queue or self.in_flight or self.phase is not Phase.REPLICATING:
            return self._acked_source  # a doubt empties the queue of what was fetched and never acknowledged
        return max(self._acked_source, self.position)

    @property
    def copied_to(self) -> int:
        """The source offset behind the last acknowledged record, -1 before the first look-up."""
        return self._acked_source

    @property
    def expected_offset(self) -> int:
        """Destination offset of the next record to be acknowledged."""
        return self.acked_sequence + self.shift

    @property
    def caught_up(self) -> bool:
        return self.end >= 0 and self.acked_position >= self.end

    def report(self, now_ms: int) -> PartitionReport:
        """What it does and why, for the reports topic."""
        position = self.acked_position
        lag = max(0, self.end - position) if position >= 0 and self.end >= 0 else 0
        state: Literal["starting", "copying", "caught_up", "waiting"]
        if self.reason is not None:
            state = "waiting"
        elif self.phase is not Phase.REPLICATING or self.end < 0:
            state = "starting"
        else:
            state = "caught_up" if lag == 0 else "copying"
        behind = max(0.0, (now_ms - self.last_timestamp_ms) / 1000) if lag and self.last_timestamp_ms >= 0 else 0.0
        return PartitionReport.model_construct(
            topic=self.topic,
            partition=self.number,
            state=state,
            reason=self.reason.value if self.reason else None,
            detail=self.detail,
            position=position,
            end=self.end,
            lag_records=lag,
            lag_seconds=round(behind, 3),
            records=self.records,
            bytes=self.bytes,
            recopied=self.recopied,
            left_out=self.left_out,
            log_start=self.log_start,
            written=self.acked_sequence,
        )
