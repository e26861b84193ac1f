"""One partition on its way: where it stands, what is queued, and why it does not move when it does not.

Two kinds of trouble are kept apart. *Doubt* concerns the destination: what was sent may or may not be there, so what is
queued is dropped and the position is looked up on the destination again, the one recovery path. *Blocked* concerns the
source: nothing more can be fetched for now, but what is queued is good and still goes out.
"""

from collections import deque
from enum import Enum
from typing import Literal, NamedTuple
from uuid import UUID

from strait.engine.buffers import Buffer
from strait.offset_map import destination_offset, source_offset
from strait.reasons import Reason
from strait.state.schema import PartitionReport, Run

PROOF_SECONDS = 5.0
"""A broker that has forgotten a producer takes any sequence from it. So unless this partition was acknowledged within
this time, its next batch goes alone: were it refused and its successor taken, its records would be lost."""


BATCH_OVERHEAD_BYTES = 1 << 10
"""What a queued batch costs besides its bytes: objects that hold it. With one record in a batch that is most of it."""


class Phase(Enum):
    LOST = "position unknown; will be looked up when nothing is in flight"
    LOOKING = "position is being looked up on the destination"
    RUNNING = "position known; copying"


class OutBatch(NamedTuple):
    """A restamped batch, ready to send. ``generation`` tells batches from before a doubt from those after it; ``tailing``
    those that came while there was nothing older to catch up with."""

    partition: "Partition"
    generation: int
    view: memoryview
    buffer: Buffer
    sequence: int
    records: int
    source_crc: int
    max_timestamp_ms: int
    tailing: bool


class Partition:
    """State of one source partition and its copy. Offsets are the next ones; counts and bytes are of this epoch."""

    __slots__ = (
        "acked_sequence", "batches", "blocked_until", "bytes", "checkpoint_sequence", "conflicts", "destination",
        "destination_id", "destination_node", "detail", "digest", "end", "failures", "first_sequence", "generation",
        "in_flight", "last_ack_at", "last_timestamp_ms", "number", "phase", "position", "queue", "queued_bytes", "reason",
        "records", "recoveries", "retired", "retry_at", "run", "scheduled", "sequence", "source_id", "topic",
    )  # fmt: skip

    def __init__(self, topic: str, number: int, destination: str, source_id: UUID, destination_id: UUID) -> None:
        self.topic = topic
        self.number = number
        self.destination = destination
        self.source_id = source_id
        self.destination_id = destination_id
        self.run: Run | None = None
        self.phase = Phase.LOST
        self.generation = 0
        self.retired = False
        self.retry_at = 0.0
        self.failures = 0
        self.blocked_until = 0.0
        self.reason: Reason | None = None
        self.detail = ""
        # where it stands
        self.position = -1  # next source offset to fetch
        self.sequence = -1  # number of the next record to stamp
        self.acked_sequence = -1  # all records before it are acknowledged
        self.first_sequence = -1  # acked_sequence when it was first known, for the ledger
        self.checkpoint_sequence = -1
        self.end = -1  # the source's last stable offset as last seen
        # on its way
        self.destination_node = -1
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
        self.last_timestamp_ms = -1

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"

    def found(self, run: Run, sequence: int) -> None:
        """The destination says which record is next: go on from there."""
        self.run = run
        self.sequence = self.acked_sequence = sequence
        self.position = source_offset(run, sequence)
        if self.first_sequence < 0:
            self.first_sequence = sequence
        self.checkpoint_sequence = max(self.checkpoint_sequence, run.sequence_end)
        self.phase = Phase.RUNNING
        self.last_ack_at = float("-inf")  # the first batch goes alone

    def doubt(self, reason: Reason | None, detail: str, retry_at: float) -> None:
        """Forget what is queued and in flight; the position is looked up again at ``retry_at`` or later."""
        self.phase = Phase.LOST
        self.generation += 1
        self.retry_at = retry_at
        self.failures += 1
        if reason is not None:
            self.reason, self.detail = reason, detail
        self.drop_queue()

    def block(self, reason: Reason, detail: str, until: float) -> None:
        """Fetch nothing until then."""
        self.reason, self.detail, self.blocked_until = reason, detail, until

    def enqueue(self, batch: OutBatch) -> None:
        self.queue.append(batch)
        self.queued_bytes += len(batch.view) + BATCH_OVERHEAD_BYTES

    def dequeue(self) -> OutBatch:
        batch = self.queue.popleft()
        self.queued_bytes -= len(batch.view) + BATCH_OVERHEAD_BYTES
        return batch

    def drop_queue(self) -> None:
        for batch in self.queue:
            batch.buffer.release()
        self.queue.clear()
        self.queued_bytes = 0

    def may_send(self, now: float) -> bool:
        """Whether a queued batch may go out now; see PROOF_SECONDS."""
        return bool(self.queue) and (self.in_flight == 0 or now - self.last_ack_at < PROOF_SECONDS)

    def acked(self, batch: OutBatch, now: float) -> None:
        self.acked_sequence = batch.sequence + batch.records
        self.last_ack_at = now
        self.failures = 0
        self.records += batch.records
        self.batches += 1
        self.bytes += len(batch.view)
        self.last_timestamp_ms = batch.max_timestamp_ms
        self.clear()

    def clear(self) -> None:
        """Nothing is wrong any more, unless the source still blocks."""
        self.failures = 0
        if self.blocked_until == 0.0:
            self.reason, self.detail = None, ""

    @property
    def acked_position(self) -> int:
        """Next source offset that is not acknowledged, -1 before the first look-up."""
        return -1 if self.run is None else source_offset(self.run, self.acked_sequence)

    @property
    def expected_offset(self) -> int:
        """Destination offset of the next record to be acknowledged."""
        return -1 if self.run is None else destination_offset(self.run, self.acked_sequence)

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
        elif self.phase is not Phase.RUNNING or self.end < 0:
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
        )
