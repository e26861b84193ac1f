"""The batches of a partition that wait to be sent, or are in flight. Belongs to the sending side."""

from collections import deque
from typing import NamedTuple

from strait.engine.partition.change_signal import ChangeSignal
from strait.net.buffers import Buffer
from strait.wire.shapes import Built

PROOF_SECONDS = 5.0
"""A broker whose state of a producer has expired accepts any sequence from it. So unless this partition had an
acknowledgement within this time, its next batch is sent alone: if it were rejected and its successor accepted, its
records would be lost."""

LINES = 2
"""Connections to each broker, which serves one request of a connection at a time: while it appends the data of one, it
reads the data of the other."""
SLOW_LINE = LINES
"""One more connection, for partitions whose followers are slow."""
SLOW_SECONDS = 60.0  # they count as slow for this time; a broker gives up a follower after 30 s

BATCH_OVERHEAD_BYTES = 1 << 10
"""Memory that a queued batch needs besides its bytes, for the objects that hold it. With one record in a batch that is
most of it."""


class OutBatch(NamedTuple):
    """A restamped batch, ready to send.

    ``generation`` distinguishes batches from before and after a reset of the position; ``position``: the source offset
    after its last record; ``promise``: the last write barrier that must be acknowledged before it may be sent, 0 for
    none; ``tailing``: it was fetched while the partition was caught up; ``crc``: its checksum, 0 if it is not needed;
    ``copy_crc``: its checksum in its four bytes, since its memory may be reused once it is sent;
    ``built``: why it is not one of the source's batches, but built from their records.
    """

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
    built: Built | None = None
    copy_crc: bytes = b""


class SendQueue:
    """Batches in the order of their sequences. ``node``: the broker that they are sent to, -1 while the partition has
    no leader; ``line``: number of the connection to it that they all use, so that they stay in order. A partition whose
    followers are slow uses `SLOW_LINE`: a broker serves one request of a connection at a time, and each that waits for
    followers would delay all others.

    ``sent_sequence``: no record from this number on was ever sent by us; -1: another instance was found writing.
    ``unanswered_end``: number of the record after the last one that was sent and will get no response; -1: all were
    answered. Its request may still reach the log; if the broker has delayed it, not before ``late_until``.

    Batches of old records may be sent alone, each until it is acknowledged (`go_alone`): the broker's state of the
    link's producer ID may expire between any two of them (ADR 12). If more are in flight and one of them is rejected,
    the broker may accept a later one as a new start, and the rejected records are lost. ``had_error``: the destination
    has rejected a batch.
    """

    __slots__ = (
        "_acked_end", "_alone_to", "_home_line", "_open_promises", "_signal", "_slow_until", "_waits", "batches", "bytes",
        "conflicts", "had_error", "in_flight", "in_flight_bytes", "last_ack_at", "last_promise", "late_until", "line", "node",
        "sent_sequence", "unanswered_end",
    )  # fmt: skip

    def __init__(self, signal: ChangeSignal, line: int = 0) -> None:
        self._signal = signal
        self.node = -1
        self.line = line
        self.batches: deque[OutBatch] = deque()
        self.bytes = 0
        self.in_flight = 0
        self.in_flight_bytes = 0
        self.last_ack_at = float("-inf")
        self.sent_sequence = -1
        self.unanswered_end = -1
        self.late_until = float("-inf")
        self.conflicts = 0
        self.had_error = False
        self._home_line = line
        self._slow_until = float("-inf")
        self.last_promise = 0  # write barrier that a new batch has to wait for; 0 if there was none
        self._open_promises: list[int] = []
        self._waits = False  # for its turn at the sender
        self._alone_to = -1  # number of the record after the newest old one that is queued or in flight, or was acked
        self._acked_end = -1  # number of the record after the last acknowledged one

    def start(self, sequence: int) -> None:
        """Set record number ``sequence`` as the next to send."""
        self.sent_sequence = self._acked_end = sequence
        self._alone_to = self.unanswered_end = -1
        self.last_ack_at = float("-inf")  # the first batch is sent alone

    def route(self, node: int) -> None:
        """Set the broker that leads the partition."""
        self.node = node

    def append(self, batch: OutBatch) -> None:
        self.batches.append(batch)
        self.bytes += len(batch.view) + BATCH_OVERHEAD_BYTES

    def go_alone(self, batch: OutBatch) -> None:
        """Send this batch, which was just appended, and all before it one by one. Those after it are sent together
        again once the first of them is acknowledged: by then the broker keeps the link's producer state for longer."""
        self._alone_to = batch.sequence + batch.records

    def schedule(self, now: float) -> bool:
        """Return whether to give the partition its turn: it has something to send, and does not wait for its turn
        already."""
        if self._waits or not self.batches or not self._may_send(now):
            return False
        self._waits = True
        return True

    def choose_line(self, now: float) -> None:
        """Select the suitable connection, unless a batch that is in flight or scheduled could be overtaken on another
        one."""
        if self.in_flight == 0 and not self._waits:
            self.line = SLOW_LINE if now < self._slow_until else self._home_line

    def followers_are_slow(self, now: float) -> None:
        """Record that the broker has waited for the followers in vain."""
        self._slow_until = now + SLOW_SECONDS

    def drop_turn(self) -> None:
        self._waits = False

    def take(self, now: float) -> OutBatch | None:
        """Return the batch to send in this turn of the partition; None if none may be sent."""
        self._waits = False
        if not self.batches or not self._may_send(now):
            return None
        batch = self.batches.popleft()
        size = len(batch.view) + BATCH_OVERHEAD_BYTES
        self.bytes -= size
        self.in_flight_bytes += size
        self.sent_sequence = batch.sequence + batch.records
        self.in_flight += 1
        self._signal.notify()
        return batch

    def _may_send(self, now: float) -> bool:
        """Return whether the first batch may be sent now; see PROOF_SECONDS."""
        if self._open_promises and self.batches[0].promise >= self._open_promises[0]:
            return False
        if self.in_flight == 0:
            return True
        return self._acked_end > self._alone_to and now - self.last_ack_at < PROOF_SECONDS

    def landed(self, batch: OutBatch) -> None:
        """Record that a batch in flight was answered."""
        self.in_flight -= 1
        self.in_flight_bytes -= len(batch.view) + BATCH_OVERHEAD_BYTES

    def given_up(self, batch: OutBatch, late_until: float) -> None:
        """Record that this batch in flight will get no response. The broker reads nothing from its connection before
        ``late_until``."""
        self.landed(batch)
        self.unanswered_end = max(self.unanswered_end, batch.sequence + batch.records)
        self.late_until = max(self.late_until, late_until)

    def waited(self) -> None:
        """Record that requests without a response will not arrive any more."""
        self.unanswered_end = -1

    def acked(self, batch: OutBatch, now: float) -> None:
        self._acked_end = batch.sequence + batch.records
        self.last_ack_at = now

    def failed(self) -> None:
        """Record that the destination has rejected a batch for any reason but another instance's writes."""
        self.had_error = True

    def beaten(self, *, refused: bool) -> None:
        """Record that another instance has written the records that this one has just sent. ``refused``: the broker
        reported it as an error."""
        self.sent_sequence = -1
        self.conflicts += refused

    def promise(self) -> int:
        """Add a write barrier for the batches that are queued from now on. Returns its number."""
        self.last_promise += 1
        self._open_promises.append(self.last_promise)
        return self.last_promise

    def keep(self, promise: int) -> None:
        """Remove a write barrier: its write is acknowledged."""
        if promise in self._open_promises:
            self._open_promises.remove(promise)

    @property
    def awaits_promises(self) -> bool:
        return bool(self._open_promises)

    def drop(self) -> None:
        """Drop the queued batches."""
        for batch in self.batches:
            batch.buffer.release()
        self.batches.clear()
        self.bytes = 0
        self._signal.notify()

    def reset(self) -> None:
        """Drop the queued batches and their write barriers."""
        self._open_promises.clear()
        self.drop()
