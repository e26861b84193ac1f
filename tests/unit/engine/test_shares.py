"""How a slot's memory is shared between the brokers of a source: the real fetchers, queues and memory, with brokers, a
destination and a clock of the test's."""

import struct
from collections import deque
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest

from strait.engine.fetcher import Fetcher
from strait.engine.leadership import Leadership
from strait.engine.partition.partition import Partition
from strait.engine.partition.send_queue import OutBatch
from strait.engine.read_replicas import ReadReplicas
from strait.engine.throttle import Throttle
from strait.net.buffers import Buffer, BufferPool
from strait.net.event_loop import Loop
from strait.net.known_topics import Leader
from strait.wire.fetch import Fetched
from strait.wire.primitives import encode_uvarint
from support.model.partitions import placed

BATCH_BYTES = 16_000
STEP_SECONDS = 0.005
SESSION = 5
_RECORDS = bytes(32 << 20)


class Broker:
    """Leads some partitions; ``written``: how many batches each holds, which offsets count."""

    def __init__(self, loop: Loop, pool: BufferPool) -> None:
        self.written: dict[int, int] = {}
        self._loop = loop
        self._pool = pool
        self._session: dict[int, tuple[int, int]] = {}  # partition -> offset and most bytes; who gave last is last
        self._request: Any = None
        self._reply: Callable[[Buffer], None]
        self._until = 0.0

    def version(self, *_: object) -> int:
        return 12

    def send(self, _: int, version: int, body: list[bytes], on_reply: Callable[[Buffer], None], **__: object) -> None:
        self._request, self._reply = FetchRequest.decode(b"".join(body), version=version), on_reply
        self._until = self._loop.now + self._request.max_wait_ms / 1000
        if self._request.session_epoch == 0:
            self._session.clear()
        for topic in self._request.topics:
            for item in topic.partitions:
                self._session[item.partition] = item.fetch_offset, item.partition_max_bytes
        for topic in self._request.forgotten_topics_data:
            for number in topic.partitions:
                self._session.pop(number, None)

    def serve(self) -> None:
        """Answer, if there is anything to say or the time is over."""
        if self._request is None:
            return
        room = self._request.max_bytes
        named: dict[int, int] = dict.fromkeys(self._session, 0) if self._request.session_epoch == 0 else {}
        for number, (offset, most) in list(self._session.items()):
            batches = min(self.written[number] - offset, min(most, room) // BATCH_BYTES)
            if batches > 0:
                named[number] = batches
                room -= batches * BATCH_BYTES
                self._session[number] = self._session.pop(number)
        if named or self._loop.now >= self._until:
            self._request = None
            reply = self._encode(named)
            frame = self._pool.take(len(reply))
            frame.view()[:] = reply
            self._reply(frame)

    def _encode(self, named: dict[int, int]) -> bytes:
        parts: list[bytes | memoryview] = [struct.pack(">ibihi", 0, 0, 0, 0, SESSION)]
        parts.append(encode_uvarint(2) + encode_uvarint(2) + b"t" + encode_uvarint(len(named) + 1) if named else b"\1")
        for number, batches in named.items():
            end, size = self.written[number], batches * BATCH_BYTES
            parts.append(struct.pack(">ihqqq", number, 0, end, end, 0) + b"\1" + struct.pack(">i", -1))
            parts += [encode_uvarint(size + 1), memoryview(_RECORDS)[:size], b"\0"]
        parts.append(b"\0\0" if named else b"\0")
        return b"".join(parts)


class Stamper:
    """Queues what comes as it is."""

    def take(self, partition: Partition, item: Fetched, frame: Buffer, *, tailing: bool) -> bool:
        for at in range(0, len(item.records), BATCH_BYTES):
            sequence = partition.cursor.sequence
            view = item.records[at : at + BATCH_BYTES]
            frame.hold()
            partition.queue.append(
                OutBatch(
                    partition.position.generation,
                    view,
                    frame,
                    sequence,
                    1,
                    sequence,
                    sequence + 1,
                    0,
                    b"",
                    0,
                    0,
                    tailing,
                )
            )
            partition.cursor.stamped(1, sequence + 1, sequence + 1, 0)
        return True


class Slot:
    """Copies ``backlogs`` partitions of each of ``brokers`` brokers, which have much to copy, and one to which a batch a
    second is written, to a destination that takes so much a second and serves each partition in turn."""

    def __init__(self, brokers: int, backlogs: int, bytes_per_second: int, memory_bytes: int) -> None:
        self.loop, self.pool = Loop(), BufferPool(memory_bytes)
        self.brokers = [Broker(self.loop, self.pool) for _ in range(brokers)]
        self.copied = [0] * brokers
        self.oldest_live_seconds = 0.0
        self._rate = bytes_per_second
        self._allowed = 0.0
        self._partitions = [placed(number=number) for number in range(brokers * (backlogs + 1))]
        self._live = set(range(brokers))
        self._live_since: dict[int, deque[float]] = {number: deque() for number in self._live}
        for partition in self._partitions:
            backlog = 0 if partition.number in self._live else 1_000_000
            self.brokers[partition.number % brokers].written[partition.number] = backlog
        self._turns: deque[Partition] = deque(self._partitions)
        self._leadership = self._lead()

    def _lead(self) -> Leadership:
        leaders = {("t", one.number): Leader(one.number % len(self.brokers), 0) for one in self._partitions}
        cluster = SimpleNamespace(
            interest=set(),
            leaders=leaders,
            topic_errors={},
            topic_ids={},
            round_trip_seconds=0.0,
            leader=lambda topic, number: leaders[topic, number],
            channel=lambda node, _: self.brokers[node],
            refresh=lambda *_: None,
        )
        for one in self._partitions:
            one.queue.route(cluster.leader("t", one.number).node)
        budgets, stamper = Throttle(), Stamper()
        replicas = ReadReplicas(self.loop, cluster, "", 300.0)  # type: ignore[arg-type]
        leadership = Leadership(
            cluster,  # type: ignore[arg-type]
            cluster,  # type: ignore[arg-type]
            "map",
            NotImplemented,
            replicas,
            make_fetcher=lambda node, line: Fetcher(
                self.loop,
                self.pool,
                cluster,  # type: ignore[arg-type]
                node,
                line,
                budgets=budgets,
                replicas=replicas,
                stamper=stamper,  # type: ignore[arg-type]
                out_of_range=NotImplemented,
                diverged=NotImplemented,
                held_back=NotImplemented,
            ),
            make_sender=lambda *_: NotImplemented,
        )
        leadership.follow(self._partitions, ())
        return leadership

    def run(self, seconds: float) -> list[int]:
        """Bytes of the backlog of each broker that arrived meanwhile."""
        before, until = list(self.copied), self.loop.now + seconds
        second = int(self.loop.now)
        while self.loop.now < until:
            self.loop.now += STEP_SECONDS
            if int(self.loop.now) > second:
                second = int(self.loop.now)
                self._write_live()
            for broker in self.brokers:
                broker.serve()
            self._take()
            self._leadership.fetch()
        return [now - then for now, then in zip(self.copied, before, strict=True)]

    def _write_live(self) -> None:
        for number in self._live:
            self.brokers[number].written[number] += 1
            self._live_since[number].append(self.loop.now)

    def _take(self) -> None:
        """The destination takes what it can in a step."""
        self._allowed = min(self._allowed + self._rate * STEP_SECONDS, self._rate * STEP_SECONDS + BATCH_BYTES)
        idle = 0
        while self._allowed >= BATCH_BYTES and idle < len(self._turns):
            partition = self._turns[0]
            self._turns.rotate(-1)
            batch = partition.queue.take(self.loop.now)
            idle = 0 if batch else idle + 1
            if batch is not None:
                partition.queue.landed(batch)
                partition.acked(batch, self.loop.now)
                batch.buffer.release()
                self._allowed -= BATCH_BYTES
                self._count(partition.number)
        for waiting in self._live_since.values():
            if waiting:
                self.oldest_live_seconds = max(self.oldest_live_seconds, self.loop.now - waiting[0])

    def _count(self, number: int) -> None:
        if number in self._live:
            self._live_since[number].popleft()
        else:
            self.copied[number % len(self.brokers)] += BATCH_BYTES


@pytest.mark.parametrize(
    ("brokers", "backlogs", "bytes_per_second", "memory_bytes"),
    [
        (5, 4, 10_000_000, 128 << 20),
        (3, 40, 10_000_000, 128 << 20),
        (3, 12, 8_000_000, 16 << 20),
        (1, 4, 10_000_000, 64 << 20),
    ],
)
def test_no_broker_starves_another_and_live_partitions_pass_beside_any_backlog(
    brokers: int, backlogs: int, bytes_per_second: int, memory_bytes: int
) -> None:
    slot = Slot(brokers, backlogs, bytes_per_second, memory_bytes)
    slot.run(5.0)  # until the memory is full
    copied = slot.run(20.0)
    assert sum(copied) > 0.9 * 20 * bytes_per_second
    assert min(copied) >= 0.7 * sum(copied) / brokers
    assert slot.oldest_live_seconds <= 1.0
    assert slot.pool.used_bytes <= memory_bytes
