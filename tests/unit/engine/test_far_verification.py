"""How long it takes to verify many partitions over a long distance: the real placement, in virtual time."""

import struct
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.protocol.consumer import FetchRequest

from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.engine.recovery.decision import Found
from strait.engine.recovery.known_runs import KnownRuns
from strait.engine.recovery.placement import Placement
from strait.model import topic_id_text
from strait.net.buffers import Buffer, BufferPool
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.known_topics import Leader
from strait.net.tasks import run
from strait.state.schema import TopicPolicy
from strait.wire.batch import restamp, split_batches
from strait.wire.primitives import encode_uvarint
from strait.wire.records import Record, build_batch
from support.model.reports import plain_run

PRODUCER_ID = 9
SOURCE_ID, DESTINATION_ID = bytes([1]) * 16, bytes([2]) * 16


def batch(size: int, producer_id: int = -1) -> bytes:
    """One record at offset 0."""
    data = bytearray(build_batch([Record(0, 1_700_000_000_000, None, bytes(size), ())], 0))
    if producer_id >= 0:
        (one,) = split_batches(memoryview(data))
        restamp(one, producer_id, 0)
    return bytes(data)


class Far:
    """A cluster of one broker, which answers a fetch after a round trip: as brokers do, only a request's first partition
    with whatever its size."""

    def __init__(self, loop: Loop, round_trip_seconds: float, records: Callable[[int], bytes]) -> None:
        self._loop = loop
        self._round_trip_seconds = round_trip_seconds
        self._records = records
        self._pool = BufferPool(1 << 30)
        self.requests = 0
        self.most_bytes = 0

    def prompt_channel(self, _: int) -> "Far":
        return self

    quiet_channel = prompt_channel

    def leader(self, _topic: str, _partition: int) -> Leader:
        return Leader(1, 0)

    def version(self, *_: object) -> int:
        return 12

    def send(self, _: int, version: int, body: list[bytes], on_reply: Callable[[Buffer], None], **__: object) -> None:
        self.requests += 1
        request = FetchRequest.decode(b"".join(body), version=version)
        (topic,) = request.topics
        parts, left = [], request.max_bytes
        for asked in topic.partitions:
            data = self._records(asked.partition) if asked.fetch_offset == 0 else b""
            if parts and len(data) > min(left, asked.partition_max_bytes):
                data = b""
            left -= len(data)
            head = struct.pack(">ihqqq", asked.partition, 0, 1, 1, 0) + b"\0" + struct.pack(">i", -1)
            parts.append(head + encode_uvarint(len(data) + 1) + data + b"\0")
        name = topic.topic.encode()
        reply = struct.pack(">ib", 0, 0) + struct.pack(">ihi", 0, 0, 0) + b"\2"
        reply += encode_uvarint(len(name) + 1) + name + encode_uvarint(len(parts) + 1) + b"".join(parts) + b"\0\0"
        self.most_bytes = max(self.most_bytes, len(reply))
        frame = self._pool.adopt(bytearray(reply))
        self._loop.call_later(self._round_trip_seconds, partial(on_reply, frame))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Goes only by what a test adds."""
    found = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr("strait.net.event_loop.time", SimpleNamespace(monotonic=lambda: found.seconds))
    return found


def verified_in(clock: SimpleNamespace, partitions: int, sizes: Callable[[int], int]) -> tuple[float, Far]:
    """Seconds until each has its position, with the source 100 ms away and the destination 1 ms; and the source."""
    loop = Loop()
    source = Far(loop, 0.1, lambda number: batch(sizes(number)))
    destination = Far(loop, 0.001, lambda number: batch(sizes(number), PRODUCER_ID))
    ids = {"source_id": topic_id_text(SOURCE_ID), "destination_id": topic_id_text(DESTINATION_ID)}
    runs = {("t", number): (plain_run(sequence_end=1, destination="t", **ids),) for number in range(partitions)}
    known = KnownRuns(SimpleNamespace(runs=runs, map_end=0))
    ends = cast(ClusterClient, source), cast(ClusterClient, destination)
    placement = Placement(loop, *ends, PRODUCER_ID, known)
    held = [Partition("t", number, "t", SOURCE_ID, DESTINATION_ID, TopicPolicy()) for number in range(partitions)]

    async def place(partition: Partition) -> None:
        await placement.place(partition.ticket(), Found(1))

    began = clock.seconds
    for partition in held:
        partition.queue.route(1)
        run(cast(Any, place(partition)))
    while any(partition.position.phase is not Phase.REPLICATING for partition in held):
        assert clock.seconds < began + 600
        clock.seconds += 0.001
        loop.run_once(0.0)
    loop.close()
    assert all(partition.cursor.offset == 1 for partition in held)
    return clock.seconds - began, source


def test_partitions_are_verified_together(clock: SimpleNamespace) -> None:
    seconds, source = verified_in(clock, 2_000, lambda _: 100)
    assert seconds < 2.0  # 10,000 take 4.2 s
    assert source.requests < 100


def test_large_batches_are_verified_one_by_one(clock: SimpleNamespace) -> None:
    seconds, source = verified_in(clock, 200, lambda number: 300_000 if number % 20 == 7 else 100)
    assert seconds < 1.0
    assert source.most_bytes < 5 << 20
