"""What a lookup makes of the throttle time of a produce quota."""

import struct
from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any, cast

import pytest

from strait.engine.recovery.log_looks import LogLooks
from strait.net.buffers import Buffer, BufferPool
from strait.net.channel import Channel
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.tasks import run
from support.model.one_broker import OneBroker
from support.model.partitions import placed


class Throttling(OneBroker):
    """The destination, and its only channel: knows no partition, and answers produce requests with these throttle times,
    in ms."""

    def __init__(self, *throttle_ms: int) -> None:
        self.throttle_ms = list(throttle_ms)

    def put_off_channel(self, _: int) -> "Throttling":
        return self

    def ask(self, _request: Any, _reply: Any, *, on_reply: Callable[[Any], None], **_: Any) -> None:
        on_reply(SimpleNamespace(topics=[]))

    def send(self, _key: int, _version: int, _body: Any, *, on_reply: Callable[[Buffer], None], **_: Any) -> None:
        header, no_topics, no_tags = bytes(5), b"\x01", b"\x00"
        reply = header + no_topics + struct.pack(">i", self.throttle_ms.pop(0)) + no_tags
        on_reply(BufferPool(1 << 20).adopt(bytearray(reply)))


@pytest.fixture
def loop() -> Iterator[Loop]:
    with closing(Loop()) as loop:
        yield loop


def seconds_put_off(loop: Loop, destination: Throttling, looks: LogLooks, *, old: bool = True) -> float:
    """For how long after the lookup the broker takes no data, according to it."""
    partition = placed(5)
    if old:
        partition.position.mark_forgettable(6)
    found: list[float] = []
    channel = cast(Channel, destination)

    async def look() -> None:
        _, look = await looks.look(1, channel, [partition.ticket()])
        found.append(look.put_off_until - look.answered_at)

    run(look())
    while not found:
        loop.run_once(0.0)
    return found[0]


def test_an_answer_without_a_throttle_time_puts_nothing_off(loop: Loop) -> None:
    """Not even until now: quiet time would begin again with each lookup."""
    destination = Throttling(0, 30_000)
    looks = LogLooks(loop, cast(ClusterClient, destination), 7)
    assert seconds_put_off(loop, destination, looks) == float("-inf")
    assert 29.0 < seconds_put_off(loop, destination, looks) <= 30.0
    assert 29.0 < seconds_put_off(loop, destination, looks) <= 30.0, (
        "without another request: the broker would not read it"
    )
    assert destination.throttle_ms == []


def test_only_for_old_records_is_a_quota_looked_for(loop: Loop) -> None:
    destination = Throttling(30_000)
    looks = LogLooks(loop, cast(ClusterClient, destination), 7)
    assert seconds_put_off(loop, destination, looks, old=False) == float("-inf")
    assert destination.throttle_ms == [30_000]
