"""Produces over one of the connections to a destination broker: many requests in flight, each with at most one batch
for each partition.

Nothing here retries. After a batch that was not acknowledged, the single recovery path continues.
"""

from collections import deque
from collections.abc import Callable

from strait.engine.destination_quota import DestinationQuota
from strait.engine.in_flight import InFlight
from strait.engine.partition.partition import Partition
from strait.engine.partition.send_queue import BATCH_OVERHEAD_BYTES, OutBatch
from strait.engine.request_size import RequestSize
from strait.net.buffers import Buffer
from strait.net.channel import NO_REPLY, Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.wire import produce
from strait.wire.primitives import Topic

REQUEST_BYTES = 4 << 20
UNSENT_BYTES = 1 << 20  # not yet accepted by the kernel: enough to keep it busy
SPARSE_BYTES = 1 << 16
"""A partition with no more than this to send and in flight is not part of a backlog. Such partitions go first, in up to
half of a request: so low traffic bypasses any backlog, and no number of them stops a backlog. A partition whose
position was just looked up goes first too, while that position is still valid."""
PRODUCE_TIMEOUT_MS = 2_000
"""How long the broker may wait for its followers, in ms. Then it returns an error, and its log shows which records it
has; with a longer timeout it could not be distinguished from a broker that is dead."""
_KEPT_SECONDS = 1.0  # a lookup takes a round trip or two

Sent = dict[tuple[Topic, int], tuple[Partition, OutBatch]]


class _Turns:
    """The partitions that have something to send, in the order in which they may."""

    def __init__(self) -> None:
        self._sparse: deque[Partition] = deque()
        self._others: deque[Partition] = deque()

    def __len__(self) -> int:
        return len(self._sparse) + len(self._others)

    def add(self, partition: Partition) -> None:
        queue = partition.queue
        sparse = queue.bytes + queue.in_flight_bytes <= SPARSE_BYTES
        first = sparse or partition.just_confirmed
        (self._sparse if first else self._others).append(partition)

    def next(self, *, sparse: bool = True) -> Partition:
        """Return the next partition. ``sparse``: those that are not part of a backlog go first."""
        first, then = (self._sparse, self._others) if sparse else (self._others, self._sparse)
        return (first or then).popleft()


class Sender:
    """Sends batches over one connection to a destination broker.

    Args:
        quota: of the broker, shared by its connections.
        looks_first: returns whether a partition whose turn has come needs a position lookup instead.
        may_continue: returns whether it may send immediately if that lookup finds the log as it was.
        on_result: called for every batch of a reply.
        on_lost: called for each batch to which no reply came.
    """

    def __init__(
        self,
        loop: Loop,
        destination: ClusterClient,
        node: int,
        line: int = 0,
        *,
        quota: DestinationQuota,
        looks_first: Callable[[Partition], bool],
        may_continue: Callable[[Partition], bool],
        on_result: Callable[[Partition, OutBatch, produce.Produced], None],
        on_lost: Callable[[Partition, OutBatch, str], None],
    ) -> None:
        self._loop = loop
        self._destination = destination
        self._node = node
        self._line = line
        self._quota = quota
        self._looks_first = looks_first
        self._may_continue = may_continue
        self._on_result = on_result
        self._on_lost = on_lost
        self._request_size = RequestSize(REQUEST_BYTES)
        self._turns = _Turns()
        self._in_flight = InFlight()
        self._pause_until = 0.0
        self._kept_for: Partition | None = None
        self._kept_until = 0.0
        self._resumes = False

    def schedule(self, partition: Partition) -> None:
        """Give a partition that has something to send its turn."""
        if partition.queue.schedule(self._loop.now):
            self._turns.add(partition)
            if partition is self._kept_for:
                self._kept_for, self._kept_until = None, 0.0

    def send(self) -> None:
        """Send as much as the connection accepts."""
        while self._turns and self._in_flight.has_room(self._loop.now) and self._loop.now >= self._pause_until:
            if wait := max(self._quota.wait(self._line, self._loop.now), self._kept_until - self._loop.now, 0.0):
                self._resume_in(wait)
                return
            channel = self._destination.channel(self._node, self._line)
            if channel is None:
                self._give_up(self._destination.trouble(self._node, self._line))
                return
            if channel.unsent_bytes > UNSENT_BYTES:
                return
            self._send_one(channel)

    def _resume_in(self, seconds: float) -> None:
        if not self._resumes:
            self._resumes = True
            self._loop.call_later(seconds, self._resume)

    def _resume(self) -> None:
        self._resumes = False
        self.send()

    def _give_up(self, trouble: str) -> None:
        """Release the memory of the batches queued for an unreachable broker and report the cause, once that is
        known."""
        for _ in range(len(self._turns) if trouble else 0):
            partition = self._turns.next()
            partition.queue.drop_turn()
            if partition.queue.batches:
                self._on_lost(partition, partition.queue.batches[0], trouble)

    def _send_one(self, channel: Channel) -> None:
        version = channel.version(produce.API_KEY, produce.VERSIONS)
        by_id = version >= 13
        topics: dict[Topic, list[tuple[int, memoryview]]] = {}
        sent: Sent = {}
        again: list[Partition] = []
        size = 0
        limit = self._request_size.limit(self._loop.now)
        request_bytes = self._quota.request_bytes(limit, self._loop.now)
        for _ in range(len(self._turns)):
            partition = self._turns.next(sparse=2 * size < request_bytes)
            queue = partition.queue
            if queue.batches and queue.node != self._node:
                self._on_lost(partition, queue.batches[0], "another broker leads the partition now")
            if queue.batches and self._looks_first(partition):
                queue.drop_turn()
                if self._quota.is_known and self._may_continue(partition):
                    self._keep_turn(partition)
                    break
                continue
            batch = queue.take(self._loop.now)
            if batch is None:
                continue
            key = partition.destination_id if by_id else partition.destination
            topics.setdefault(key, []).append((partition.number, batch.view))
            sent[key, partition.number] = partition, batch
            size += len(batch.view) + BATCH_OVERHEAD_BYTES
            if queue.schedule(self._loop.now):
                again.append(partition)  # its next batch goes with the next request
            if size >= request_bytes:
                break
        for partition in again:
            self._turns.add(partition)
        if sent:
            self._dispatch(channel, version, topics, sent, size, limit)

    def _keep_turn(self, partition: Partition) -> None:
        """Let nothing else be sent until the partition has been looked up: under a quota, its next turn would come so late
        that it would have to be looked up again. Not for one whose log must be watched for seconds then."""
        self._kept_for, self._kept_until = partition, self._loop.now + _KEPT_SECONDS

    def _dispatch(
        self,
        channel: Channel,
        version: int,
        topics: dict[Topic, list[tuple[int, memoryview]]],
        sent: Sent,
        size: int,
        limit: int,
    ) -> None:
        sent_at = self._loop.now
        self._in_flight.sent(size)
        self._quota.sent(self._line, size, sent_at)

        def give_up(cause: str) -> None:
            for partition, batch in sent.values():
                partition.queue.given_up(batch, self._pause_until)
                self._on_lost(partition, batch, cause)

        def take(frame: Buffer) -> None:
            try:
                throttle_ms, results = produce.decode_reply(version, frame.view())
            finally:
                frame.release()
            self._in_flight.answered(size, self._loop.now - sent_at, self._loop.now)
            self._quota.answered(size, throttle_ms, self._loop.now)
            self._request_size.answered(size)
            if throttle_ms:
                self._pause_until = self._loop.now + throttle_ms / 1000
                channel.be_patient(throttle_ms / 1000)
            for result in results:
                one = sent.pop((result.topic, result.partition), None)
                if one is not None:
                    partition, batch = one
                    partition.queue.landed(batch)
                    self._on_result(partition, batch, result)
            if sent:
                give_up("the reply does not mention it")

        def lost(cause: str) -> None:
            self._in_flight.lost(size)
            if cause != NO_REPLY:
                self._request_size.lost(size, limit, self._loop.now)
            give_up(cause)

        buffers = [batch.buffer for _, batch in sent.values()]

        def free_memory() -> None:  # a retry would fetch again, so no memory is kept for one
            for buffer in buffers:
                buffer.release()

        channel.send(
            produce.API_KEY,
            version,
            produce.encode_request(topics, PRODUCE_TIMEOUT_MS),
            on_reply=take,
            on_lost=lost,
            on_sent=free_memory,
        )
