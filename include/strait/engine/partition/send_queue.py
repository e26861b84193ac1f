"""What of a partition waits to be sent, and what is in flight. The sending side's."""

from collections import deque
from typing import NamedTuple

from strait.engine.partition.change_signal import ChangeSignal
from strait.net.buffers import Buffer
from strait.wire.shapes import Built

PROOF_SECONDS = 5.0
"""A broker that has forgotten a producer takes any sequence from it. So unless this partition was acknowledged within
this time, its next batch goes alone: were it refused and its successor taken, its records would be lost."""

LINES = 2
"""To each broker, which serves one request of a connection at a time: while it appends what came over one, it reads
what comes over the other."""
SLOW_LINE = LINES
"""One more, for partitions whose followers are slow."""
SLOW_SECONDS = 60.0  # they count as slow for so long; a broker gives up a follower after half a minute

BATCH_OVERHEAD_BYTES = 1 << 10
"""What a queued batch costs besides its bytes: objects that hold it. With one record in a batch that is most of it."""


class OutBatch(NamedTuple):
    """A restamped batch, ready to send.

    ``generation`` tells batches from before a reset of the position from those after it; ``position``: the source
    offset after its last record; ``promise``: the last thing that must be written down before it may go out, 0 for
    none; ``tailing``: it came while there was nothing older to catch up with; ``crc``: its own, 0 if nobody will ask;
    ``built``: why it is not one of the source's, but made of their records.
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


class SendQueue:
    """Batches in the order of their sequences. ``node``: the broker that they go to, -1 while the partition has no
    leader; ``line``: the one of the connections to it that they keep to, so that they stay in order. A partition whose
    followers are slow gets `SLOW_LINE`: a broker serves one request of a connection at a time, and each that waits for
    followers would hold up all others.

    ``sent_sequence``: no record from here on was ever sent by us; -1: another instance has been found writing.
    ``unanswered_end``: number of the record after the last one that was sent and to which no answer will come; -1: all
    were answered. Its request may still reach the log; not before ``late_until`` where the broker has put it off.

    Batches of old records may go alone, each until it is acknowledged (`go_alone`): the broker may forget the link's
    producer ID between any two of them (ADR 12). If more are in flight and one of them is refused, the broker may take a
    later one for a new beginning, and the refused records are lost. ``had_error``: the destination has refused a batch.
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
        self.last_promise = 0  # what a batch that is made now has to wait for; 0 if nothing was ever promised
        self._open_promises: list[int] = []
        self._waits = False  # for its turn at the sender
        self._alone_to = -1  # number of the record after the newest old one that is queued or in flight, or was acked
        self._acked_end = -1  # number of the record after the last acknowledged one

    def start(self, sequence: int) -> None:
        """Record number ``sequence`` is the next to send."""
        self.sent_sequence = self._acked_end = sequence
        self._alone_to = self.unanswered_end = -1
        self.last_ack_at = float("-inf")  # the first batch goes alone

    def route(self, node: int) -> None:
        """Another broker leads the partition."""
        self.node = node

    def append(self, batch: OutBatch) -> None:
        self.batches.append(batch)
        self.bytes += len(batch.view) + BATCH_OVERHEAD_BYTES

    def go_alone(self, batch: OutBatch) -> None:
        """This batch, which was just appended, and all before it. Those after it go together again once the first of
        them is acknowledged: by then the broker remembers the link for longer."""
        self._alone_to = batch.sequence + batch.records

    def schedule(self, now: float) -> bool:
        """Whether to give the partition its turn: it has something to send, and does not wait for its turn already."""
        if self._waits or not self.batches or not self._may_send(now):
            return False
        self._waits = True
        return True

    def choose_line(self, now: float) -> None:
        """Take the one that fits, unless something of the partition would be overtaken on another one."""
        if self.in_flight == 0 and not self._waits:
            self.line = SLOW_LINE if now < self._slow_until else self._home_line

    def followers_are_slow(self, now: float) -> None:
        """The broker has waited for them in vain."""
        self._slow_until = now + SLOW_SECONDS

    def drop_turn(self) -> None:
        self._waits = False

    def take(self, now: float) -> OutBatch | None:
        """It is this partition's turn: the batch that goes out, if one may."""
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
        """Whether the first batch may go out now; see PROOF_SECONDS."""
        if self._open_promises and self.batches[0].promise >= self._open_promises[0]:
            return False
        if self.in_flight == 0:
            return True
        return self._acked_end > self._alone_to and now - self.last_ack_at < PROOF_SECONDS

    def landed(self, batch: OutBatch) -> None:
        """A batch in flight was answered."""
        self.in_flight -= 1
        self.in_flight_bytes -= len(batch.view) + BATCH_OVERHEAD_BYTES

    def given_up(self, batch: OutBatch, late_until: float) -> None:
        """No answer will come to this batch in flight. The broker takes nothing from its connection before then."""
        self.landed(batch)
        self.unanswered_end = max(self.unanswered_end, batch.sequence + batch.records)
        self.late_until = max(self.late_until, late_until)

    def waited(self) -> None:
        """What was not answered will not arrive any more."""
        self.unanswered_end = -1

    def acked(self, batch: OutBatch, now: float) -> None:
        self._acked_end = batch.sequence + batch.records
        self.last_ack_at = now

    def failed(self) -> None:
        """The destination has refused a batch, for whatever reason but another instance's."""
        self.had_error = True

    def beaten(self, *, refused: bool) -> None:
        """Another instance has written what this one has just sent. ``refused``: the broker said so."""
        self.sent_sequence = -1
        self.conflicts += refused

    def promise(self) -> int:
        """Something must be written down before what comes next may go out."""
        self.last_promise += 1
        self._open_promises.append(self.last_promise)
        return self.last_promise

    def keep(self, promise: int) -> None:
        """It is written."""
        if promise in self._open_promises:
            self._open_promises.remove(promise)

    @property
    def awaits_promises(self) -> bool:
        return bool(self._open_promises)

    def drop(self) -> None:
        """Forget what is queued."""
        for batch in self.batches:
            batch.buffer.release()
        self.batches.clear()
        self.bytes = 0
        self._signal.notify()

    def reset(self) -> None:
        """Forget what is queued, and what must be written down for it."""
        self._open_promises.clear()
        self.drop()
