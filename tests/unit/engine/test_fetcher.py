"""When more is asked for, and how much."""

import struct
from collections.abc import Callable
from typing import Any

import pytest

from strait.engine.budgets import Budgets
from strait.engine.buffers import Buffer, BufferPool
from strait.engine.cluster import Leader
from strait.engine.fetcher import REPLY_BYTES, REPLY_SECONDS, Fetcher
from strait.engine.loop import Loop
from support.partitions import placed

NO_TOPICS = struct.pack(">ib", 0, 0) + struct.pack(">ihi", 0, 0, 0) + b"\1\0"


class Source:
    """A cluster and its only channel, which keeps what is sent."""

    round_trip_seconds = 0.0

    def __init__(self) -> None:
        self.open: list[Callable[[Buffer], None]] = []

    def channel(self, _: int) -> "Source":
        return self

    def leader(self, *_: object) -> Leader:
        return Leader(1, 0)

    def version(self, *_: object) -> int:
        return 12

    def send(self, *_: object, on_reply: Callable[[Buffer], None], **__: object) -> None:
        self.open.append(on_reply)


def fetcher(source: Any, partitions: int) -> Fetcher:
    found = Fetcher(
        Loop(),
        BufferPool(128 << 20),
        source,
        1,
        budgets=Budgets(),
        intake=NotImplemented,
        out_of_range=NotImplemented,
        diverged=NotImplemented,
    )
    found.fit(1)
    found.assign([placed(number=number) for number in range(partitions)])
    return found


def test_the_next_request_goes_out_in_the_turn_in_which_a_reply_came() -> None:
    source = Source()
    it = fetcher(source, partitions=6)
    it.ask()
    it.ask()
    assert len(source.open) == 1, "one at a time"
    reply = BufferPool(1 << 20).adopt(bytearray(NO_TOPICS))
    source.open.pop()(reply)
    it.ask()
    assert len(source.open) == 1


@pytest.mark.parametrize(
    ("line_bytes_per_second", "size"),
    [(1e9, REPLY_BYTES[1]), (3e6, 4 << 20), (180e3, 256 << 10), (1.0, REPLY_BYTES[0])],
)
def test_a_reply_is_as_large_as_the_line_brings_in_time(line_bytes_per_second: float, size: int) -> None:
    it = fetcher(Source(), partitions=1)
    assert it.size_of(line_bytes_per_second) == size
    assert size <= max(REPLY_BYTES[0], line_bytes_per_second * REPLY_SECONDS)
