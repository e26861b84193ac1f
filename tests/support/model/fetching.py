"""A source's broker that keeps what is sent to it, and the real fetcher that asks it."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

from kafka.protocol.consumer import FetchRequest

from strait.engine.fetcher import Fetcher
from strait.engine.partition.partition import Partition
from strait.engine.read_replicas import ReadReplicas
from strait.engine.throttle import Throttle
from strait.net.buffers import Buffer, BufferPool
from strait.net.event_loop import Loop
from support.model.partitions import placed

SESSION = 5
NO_TOPICS = struct.pack(">ib", 0, 0) + struct.pack(">ihi", 0, 0, SESSION) + b"\1\0"


class Source:
    """A cluster and its only channel, which keeps what is sent."""

    round_trip_seconds = 0.0

    def __init__(self) -> None:
        self.open: list[Callable[[Buffer], None]] = []
        self.asked: list[Any] = []

    def channel(self, *_: int) -> "Source | None":
        return self

    def version(self, *_: object) -> int:
        return 12

    def send(self, _: int, version: int, body: list[bytes], on_reply: Callable[[Buffer], None], **__: object) -> None:
        self.asked.append(FetchRequest.decode(b"".join(body), version=version))
        self.open.append(on_reply)

    def answer_without_news(self) -> None:
        self.open.pop()(BufferPool(1 << 20).adopt(bytearray(NO_TOPICS)))


def fetcher(
    source: Any,
    partitions: Sequence[Partition],
    budgets: Throttle | None = None,
    loop: Loop | None = None,
    line: int = 0,
    stamper: Any = NotImplemented,
    pool: BufferPool | None = None,
) -> Fetcher:
    loop = loop or Loop()
    found = Fetcher(
        loop,
        pool or BufferPool(128 << 20),
        source,
        1,
        line,
        budgets=budgets or Throttle(),
        replicas=ReadReplicas(loop, source, "", 300.0),
        stamper=stamper,
        out_of_range=NotImplemented,
        diverged=NotImplemented,
        held_back=NotImplemented,
    )
    for partition in partitions:
        found.add(partition)
    found.fit(1)
    return found


def some(partitions: int) -> list[Partition]:
    return [placed(number=number) for number in range(partitions)]


def caught_up(partitions: int) -> list[Partition]:
    """The source has said of each that there is nothing to copy."""
    found = some(partitions)
    for partition in found:
        partition.cursor.heard(0, 0, 0)
    return found
