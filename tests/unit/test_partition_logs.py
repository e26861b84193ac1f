"""Reading logs whose brokers have a quota: a throttled reply has no data, and means neither the log's end nor an outage."""

import struct
from collections.abc import Iterator
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import pytest

from strait.errors import ClusterUnavailable, NotAuthorized
from strait.model import TopicPartition
from strait.net import partition_logs as module
from strait.net.partition_logs import PartitionLogs
from strait.wire import error_codes

PLACE = TopicPartition("orders", 0)


def reply(throttle_ms: int, error: int = 0) -> memoryview:
    """A reply of version 12 without topics, as a broker sends it to a client whose quota is used up."""
    return memoryview(bytes(4) + b"\0" + struct.pack(">ihi", throttle_ms, error, 0) + b"\1\0")


class Clock:
    """Time that passes only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def logs(replies: Iterator[memoryview], monkeypatch: pytest.MonkeyPatch) -> PartitionLogs:
    connection: Any = SimpleNamespace(version=lambda *_: 12, ask_raw=lambda *_: next(replies))
    monkeypatch.setattr(PartitionLogs, "_leader", lambda *_: connection)
    return PartitionLogs({"bootstrap.servers": "localhost:1"}, "a")


def test_a_read_waits_as_long_as_the_broker_asks_for(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [reply(900), *[reply(4_000)] * 9, reply(700, error_codes.TOPIC_AUTHORIZATION_FAILED)]
    with pytest.raises(NotAuthorized):
        logs(iter(answers), monkeypatch).read_raw(PLACE, 7, 1000, committed=True)
    assert clock.slept == [0.9, *[4.0] * 9]


def test_a_quota_that_lets_nothing_through_is_named(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterUnavailable, match=r"reading orders-0 at offset 7: a quota .* 300 s") as failed:
        logs(repeat(reply(5_000)), monkeypatch).read_raw(PLACE, 7, 1000, committed=False)
    assert failed.value.hint == "raise the consumer_byte_rate of this principal"
    assert 300 <= clock.now <= 310


def test_a_reply_without_the_partition_is_still_an_error(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_SECONDS", 0.0)
    with pytest.raises(ClusterUnavailable, match="UNKNOWN"):
        logs(repeat(reply(0)), monkeypatch).read_raw(PLACE, 7, 1000, committed=False)
    assert clock.slept == []
