"""Producing over one of the lines to a destination broker: many requests in flight, each with at most one batch for
each partition.

Nothing here retries. A batch that was not acknowledged puts its partition in doubt, and the one recovery path goes on.
"""

from collections import deque
from collections.abc import Callable

from strait.engine.partition import BATCH_OVERHEAD_BYTES, OutBatch, Partition
from strait.net.buffers import Buffer
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.wire import produce
from strait.wire.primitives import Topic

LINES = 2
"""To each broker, which serves one request of a connection at a time: while it appends what came over one, it reads
what comes over the other."""

REQUEST_BYTES = 4 << 20
UNSENT_BYTES = 1 << 20  # what waits for the kernel: enough to keep it busy
IN_FLIGHT_BYTES = 64 << 20
PRODUCE_TIMEOUT_MS = 2_000
"""How long the broker may wait for its followers. Then it says so, and the log tells what it has; were it given longer,
it could not be told from one that is dead."""

Sent = dict[tuple[Topic, int], OutBatch]


class Sender:
    """``on_result(batch, result)`` for every batch of a reply; ``on_lost(batch, cause)`` where no reply came."""

    def __init__(
        self,
        loop: Loop,
        destination: ClusterClient,
        node: int,
        line: int = 0,
        *,
        on_result: Callable[[OutBatch, produce.Produced], None],
        on_lost: Callable[[OutBatch, str], None],
    ) -> None:
        self._loop = loop
        self._destination = destination
        self._node = node
        self._line = line
        self._on_result = on_result
        self._on_lost = on_lost
        self._ready: deque[Partition] = deque()
        self._in_flight_bytes = 0
        self._pause_until = 0.0

    def schedule(self, partition: Partition) -> None:
        """The partition has something to send; it gets its turn."""
        if not partition.scheduled and partition.may_send(self._loop.now):
            partition.scheduled = True
            self._ready.append(partition)

    def send(self) -> None:
        """Send as much as the connection takes."""
        while self._ready and self._in_flight_bytes < IN_FLIGHT_BYTES and self._loop.now >= self._pause_until:
            channel = self._destination.channel(self._node, self._line)
            if channel is None:
                self._give_up(self._destination.trouble(self._node, self._line))
                return
            if channel.unsent_bytes > UNSENT_BYTES:
                return
            self._send_one(channel)

    def _give_up(self, trouble: str) -> None:
        """There is no way to the broker: free the memory of what is queued for it, and let the reports say why."""
        for _ in range(len(self._ready) if trouble else 0):
            partition = self._ready.popleft()
            partition.scheduled = False
            if partition.queue:
                self._on_lost(partition.queue[0], trouble)

    def _send_one(self, channel: Channel) -> None:
        version = channel.version(produce.API_KEY, produce.VERSIONS)
        by_id = version >= 13
        topics: dict[Topic, list[tuple[int, memoryview]]] = {}
        sent: Sent = {}
        size = 0
        for _ in range(len(self._ready)):
            partition = self._ready.popleft()
            partition.scheduled = False
            if partition.queue and partition.destination_node != self._node:
                self._on_lost(partition.queue[0], "another broker leads the partition now")
            if not partition.may_send(self._loop.now):
                continue
            batch = partition.dequeue()
            partition.in_flight += 1
            key = partition.destination_id if by_id else partition.destination
            topics.setdefault(key, []).append((partition.number, batch.view))
            sent[key, partition.number] = batch
            size += len(batch.view) + BATCH_OVERHEAD_BYTES
            self.schedule(partition)  # its next batch goes with the next request
            if size >= REQUEST_BYTES:
                break
        if sent:
            self._dispatch(channel, version, topics, sent, size)

    def _dispatch(
        self,
        channel: Channel,
        version: int,
        topics: dict[Topic, list[tuple[int, memoryview]]],
        sent: Sent,
        size: int,
    ) -> None:
        self._in_flight_bytes += size

        def take(frame: Buffer) -> None:
            try:
                throttle_ms, results = produce.decode_reply(version, frame.view())
            finally:
                frame.release()
            self._in_flight_bytes -= size
            if throttle_ms:
                self._pause_until = self._loop.now + throttle_ms / 1000
                channel.be_patient(throttle_ms / 1000)
            for result in results:
                batch = sent.pop((result.topic, result.partition), None)
                if batch is not None:
                    batch.partition.in_flight -= 1
                    self._on_result(batch, result)
            for batch in sent.values():
                batch.partition.in_flight -= 1
                self._on_lost(batch, "the reply does not mention it")

        def lost(cause: str) -> None:
            self._in_flight_bytes -= size
            for batch in sent.values():
                batch.partition.in_flight -= 1
                self._on_lost(batch, cause)

        buffers = [batch.buffer for batch in sent.values()]

        def free_memory() -> None:  # a retry would fetch again, so nothing is kept for one
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
