"""One source partition and its destination partition: its parts, why it waits if it does, and its totals.

Two kinds of failures are separate. A *reset of the position* concerns the destination: the batches that were sent may
or may not be in its log, so queued batches are dropped and the position is looked up on the destination again, by the
single recovery path. *Blocked* concerns the source: nothing more can be fetched for now, but queued batches are valid
and are still sent.
"""

import zlib
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from strait.config.route_names import topic_of
from strait.engine.partition.change_signal import ChangeSignal
from strait.engine.partition.changes import Changes
from strait.engine.partition.cursor import Cursor, OpenTransaction
from strait.engine.partition.position import Phase, Position
from strait.engine.partition.send_queue import OutBatch, SendQueue
from strait.model import topic_id_text
from strait.reasons import Reason
from strait.state.offset_map import gaps_of, locate
from strait.state.schema import OffsetMapping, TopicPolicy


class Superseded(Exception):
    """The partition's position was reset again, or the plan has taken the partition away."""


class Ticket(NamedTuple):
    """Shows a task that has waited on the partition's behalf whether its result is still wanted."""

    partition: "Partition"
    generation: int

    @property
    def is_current(self) -> bool:
        """Whether the position was not reset since, and the plan has not taken the partition away."""
        return self.partition.position.generation == self.generation and not self.partition.retired

    def check(self) -> None:
        if not self.is_current:
            raise Superseded


class Start(NamedTuple):
    """The start of an interval of the replication ledger; -1: not known yet."""

    source: int = -1
    offset: int = -1
    sequence: int = -1


_UNKNOWN = Start()


class Interval(NamedTuple):
    """The start of an interval of the replication ledger, and the totals acknowledged since. ``copy_digest_from``: number
    of the first record that ``copy_digest`` covers; it covers all from there on. -1: none."""

    start: Start
    records: int
    batches: int
    bytes: int
    digest: int
    copy_digest: int
    copy_digest_from: int


class Totals:
    """Totals acknowledged since the start, for the report, and since the ledger's last row."""

    __slots__ = (
        "_before", "_digested_before", "_digested_from", "_shown", "_start", "batches", "bytes", "copy_digest", "digest",
        "last_timestamp_ms", "records",
    )  # fmt: skip

    def __init__(self) -> None:
        self.records = 0
        self.batches = 0
        self.bytes = 0
        self.digest = 0
        self.copy_digest = 0
        self._digested_from = -1  # number of the first record that `copy_digest` covers
        self._digested_before = 0  # records that were acknowledged before that one
        self.last_timestamp_ms = -1
        self._start = _UNKNOWN
        self._before = 0, 0, 0  # records, batches and bytes at the start of the interval
        self._shown: Hashable = None  # of the last row

    def start(self, source: int, offset: int, sequence: int) -> None:
        """Set the position at which the interval starts, unless it is already set. If acknowledgements before it were lost,
        or another process wrote records there, ``copy_digest`` starts there."""
        if self._start.source < 0:
            self._start = Start(source, offset, sequence)
        if sequence != self._digested_to:
            self._digest_from(sequence)

    @property
    def _digested_to(self) -> int:
        return self._digested_from + self.records - self._digested_before

    def _digest_from(self, sequence: int) -> None:
        self.copy_digest, self._digested_from, self._digested_before = 0, sequence, self.records

    def end_interval(self, sequence: int, shown: Hashable) -> Interval | None:
        """End the interval for the ledger, and start the next one. Returns None, and continues the interval, if nothing
        is new.

        Args:
            sequence: number of the record after the last acknowledged one.
            shown: other values of the row that are new if they differ from those of the last one.
        """
        records, batches, size = self._before
        if self.records == records and sequence == self._start.sequence and shown == self._shown:
            return None
        covers = sequence == self._digested_to > self._digested_from
        of_copy = (self.copy_digest, self._digested_from) if covers else (-1, -1)
        self._digest_from(sequence)
        sums = self.records - records, self.batches - batches, self.bytes - size
        ended = Interval(self._start, *sums, self.digest, *of_copy)
        self._start, self._shown, self.digest = _UNKNOWN, shown, 0
        self._before = self.records, self.batches, self.bytes
        return ended

    def acked(self, batch: OutBatch) -> None:
        self.records += batch.records
        self.batches += 1
        self.bytes += len(batch.view)
        self.digest = zlib.crc32(batch.source_crcs, self.digest)  # so the order of batches matters
        self.copy_digest = zlib.crc32(batch.copy_crc, self.copy_digest)
        self.last_timestamp_ms = batch.max_timestamp_ms


class Partition:
    """State of one source partition and its destination partition. ``reason`` and ``detail``: why it waits, None if it
    does not. ``topic``: its name in plans, map and reports; ``source_topic``: that on the source, which several routes
    share.

    The values that a report contains are changed by its methods alone, which note that in ``changes``.
    """

    __slots__ = (
        "_changes", "_loss_noted", "cursor", "destination", "destination_id", "detail", "number", "policy", "position",
        "queue", "reason", "retired", "signal", "source_id", "source_topic", "topic", "totals",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        number: int,
        destination: str,
        source_id: bytes,
        destination_id: bytes,
        policy: TopicPolicy,
        line: int = 0,
        changes: "Changes[Partition] | None" = None,
    ) -> None:
        self._changes: Changes[Partition] = Changes() if changes is None else changes
        self.topic = topic
        self.source_topic = topic_of(topic)
        self.number = number
        self.destination = destination
        self.source_id = source_id
        self.destination_id = destination_id
        self.policy = policy
        self.signal = ChangeSignal()
        self.cursor = Cursor(policy.max_message_bytes, self.signal)
        self.cursor.bound(policy.end_of(number))
        self.queue = SendQueue(self.signal, line)
        self.position = Position(self.signal)
        self.totals = Totals()
        self.retired = False
        self.reason: Reason | None = None
        self.detail = ""
        self._loss_noted: tuple[Reason, tuple[int, int]] | None = None
        self._changes.begin(self)

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"

    @property
    def ids(self) -> tuple[str, str]:
        """The IDs of the source and the destination topic, in the format of the map."""
        return topic_id_text(self.source_id), topic_id_text(self.destination_id)

    @property
    def source_place(self) -> tuple[str, int]:
        """The partition of the source that is read."""
        return self.source_topic, self.number

    def ticket(self) -> Ticket:
        return Ticket(self, self.position.generation)

    # --- position -----------------------------------------------------------------------------------------------------

    def found(self, runs: Sequence[OffsetMapping], sequence: int, position: int | None) -> None:
        """Continue at the next record by the destination's log, at its source offset by the map.

        ``position`` differs from the map's source offset if records are copied again; None starts at the source's first
        record. A new segment then records the difference.
        """
        begin = position or 0
        mapped = position is not None and locate(runs, sequence) == position
        self.position.found(runs, sequence, begin, mapped=mapped)
        self.totals.start(begin, self.position.expected_offset, sequence)
        told = sorted({gap for run in runs for gap in gaps_of(run, sequence)})
        self.cursor.start(sequence, begin, self.position.acked_epoch, told, mapped=mapped)
        self.queue.start(sequence)
        self._changes.turned(self)

    def reset_position(self, reason: Reason | None, detail: str, retry_at: float) -> None:
        """Drop queued batches and ignore those in flight; the position is looked up again at ``retry_at`` or later."""
        self.position.reset(retry_at)
        self._changes.turned(self)
        if reason is not None:
            self.show(reason, detail)
        if self.queue.awaits_promises:
            self._loss_noted = None  # its write may have failed; written again it is the same entry
        self.queue.reset()

    def acked(self, batch: OutBatch, now: float) -> None:
        """Record that the destination has acknowledged a batch."""
        self.position.acked(batch)
        self.queue.acked(batch, now)
        if self.cursor.quarantined or self.cursor.apart[1]:
            self.cursor.settle(batch.position)
        self.totals.acked(batch)
        self._changes.moved(self)
        if self.reason is not None:
            self.clear()

    def heard(self, end: int, high_watermark: int, log_start: int) -> None:
        """Apply a response of the source's leader."""
        held, known = self.cursor.transaction, self.cursor.known
        self.cursor.heard(end, high_watermark, log_start)
        self._note_ends(held, known)

    def fetched(self, end: int, high_watermark: int, log_start: int) -> None:
        """Apply a response of the replica from which the partition is fetched."""
        if not self.cursor.from_follower:
            self.heard(end, high_watermark, log_start)
            return
        held, known = self.cursor.transaction, self.cursor.known
        self.cursor.heard_from_follower(end, high_watermark)
        self._note_ends(held, known)

    def _note_ends(self, held: OpenTransaction | None, known: tuple[int, int, int]) -> None:
        cursor = self.cursor
        if cursor.known != known:
            self._changes.moved(self)
        if held is not cursor.transaction:
            self._changes.turned(self)

    def leader_ends(self, end: int) -> None:
        """Apply the leader's last stable offset, as queried while the partition is fetched from a follower."""
        if end > self.cursor.end:
            self.cursor.leader_ends(end)
            self._changes.turned(self)

    def held_back(self, transaction: OpenTransaction) -> None:
        """Record that this transaction of the source holds records back, or that more is known of it."""
        self.cursor.transaction = transaction
        self._changes.turned(self)

    def skip(self, offset: int, epoch: int, left_out: int) -> None:
        """Continue at that source offset: there is nothing to copy before it."""
        self.cursor.skip(offset, epoch, left_out)
        self._changes.moved(self)

    def step_over(self, offset: int) -> None:
        """Skip the record at ``offset``, which goes to quarantine."""
        self.cursor.step_over(offset)
        self._changes.moved(self)

    def retire(self) -> None:
        """Stop copying the partition: the plan no longer assigns it to this slot. Its totals remain available."""
        self.retired = True
        self.position.abandon()
        self.queue.drop()
        self._changes.leave(self)

    # --- failures -----------------------------------------------------------------------------------------------------

    def show(self, reason: Reason, detail: str) -> None:
        """Set the reason why it waits."""
        if reason != self.reason:
            self._changes.turned(self)
        elif detail != self.detail:
            self._changes.moved(self)
        self.reason, self.detail = reason, detail
        self.signal.notify()

    def block(self, reason: Reason, detail: str, until: float) -> None:
        """Show a reason, and fetch nothing until ``until``, in seconds of the loop's clock."""
        self.show(reason, detail)
        self.cursor.block(until)

    def jump(self, offset: int) -> None:
        """Fetch at another source offset, immediately."""
        self.cursor.jump(offset)
        self._changes.moved(self)
        self.unblock()

    def unblock(self) -> None:
        """Fetch again immediately."""
        self.cursor.unblock()
        self.clear()

    def clear(self) -> None:
        """Record that nothing is wrong any more, unless the source still blocks."""
        self.position.succeeded()
        if self.cursor.blocked_until == 0.0:
            if self.reason is not None:
                self._changes.turned(self)
            self.reason, self.detail = None, ""

    def obey(self, policy: TopicPolicy) -> None:
        """Apply a policy that may have changed. A partition that waits for an operator's change is retried
        immediately."""
        if policy != self.policy:
            self.policy = policy
            self.cursor.limit(policy.max_message_bytes)
            self.cursor.bound(policy.end_of(self.number))
            self._changes.turned(self)
            self.cursor.unblock()
            self.position.postpone(0.0)

    def notes_loss(self, cause: Reason, lost: tuple[int, int]) -> bool:
        """Return whether this loss must be recorded: each is recorded once."""
        if self._loss_noted == (cause, lost):
            return False
        self._loss_noted = cause, lost
        return True

    # --- derived ------------------------------------------------------------------------------------------------------

    @property
    def awaits_word(self) -> bool:
        """Whether the source must report the partition's state even without new records: nothing is known yet, or a
        failure is shown."""
        return self.cursor.end < 0 or self.reason is not None

    @property
    def just_confirmed(self) -> bool:
        """Whether nothing was sent since the last position lookup, or since the log was last queried for batches that were
        kept."""
        position, queue = self.position, self.queue
        untried = position.acked_sequence == position.found_sequence or position.quiet_at > queue.last_ack_at
        return queue.in_flight == 0 and untried

    @property
    def idle(self) -> bool:
        """Whether nothing is queued or in flight."""
        return not self.queue.batches and not self.queue.in_flight

    @property
    def acked_offset(self) -> int:
        """The source offset before which all offsets are acknowledged or hold nothing to copy; -1 before the first
        position lookup."""
        if not self.idle or self.position.phase is not Phase.REPLICATING:
            return self.position.copied_to  # a reset drops fetched records that were never acknowledged
        return max(self.position.copied_to, self.cursor.offset)

    @property
    def finished(self) -> bool:
        """Whether everything before the end of its copy is acknowledged, and its position is known."""
        return self.position.phase is Phase.REPLICATING and 0 <= self.cursor.until <= self.acked_offset

    @property
    def caught_up(self) -> bool:
        return self.finished or (self.cursor.end >= 0 and self.acked_offset >= self.cursor.end)
