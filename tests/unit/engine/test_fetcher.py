"""When more is asked for, and how much."""

import struct
from collections.abc import Callable
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest

from strait.engine.fetcher import REPLY_BYTES, REPLY_SECONDS, Fetcher
from strait.engine.throttle import BURST_SECONDS, Throttle
from strait.net.buffers import Buffer, BufferPool
from strait.net.event_loop import Loop
from strait.reasons import Reason
from strait.state.schema import Budget, TopicPolicy
from support.model.partitions import placed

SESSION = 5
NO_TOPICS = struct.pack(">ib", 0, 0) + struct.pack(">ihi", 0, 0, SESSION) + b"\1\0"


class Source:
    """A cluster and its only channel, which keeps what is sent."""

    round_trip_seconds = 0.0

    def __init__(self) -> None:
        self.open: list[Callable[[Buffer], None]] = []
        self.asked: list[Any] = []

    def channel(self, _: int) -> "Source":
        return self

    def version(self, *_: object) -> int:
        return 12

    def send(self, _: int, version: int, body: list[bytes], on_reply: Callable[[Buffer], None], **__: object) -> None:
        self.asked.append(FetchRequest.decode(b"".join(body), version=version))
        self.open.append(on_reply)

    def answer_without_news(self) -> None:
        self.open.pop()(BufferPool(1 << 20).adopt(bytearray(NO_TOPICS)))


def fetcher(source: Any, partitions: int, budgets: Throttle | None = None) -> Fetcher:
    found = Fetcher(
        Loop(),
        BufferPool(128 << 20),
        source,
        1,
        budgets=budgets or Throttle(),
        stamper=NotImplemented,
        out_of_range=NotImplemented,
        diverged=NotImplemented,
        held_back=NotImplemented,
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
    source.answer_without_news()
    it.ask()
    assert len(source.open) == 1


def test_a_topic_that_changes_its_class_is_held_to_the_new_one_before_anything_is_assigned_anew() -> None:
    """That waits for metadata, where the same plan brings a topic that has no leader yet."""
    budgets, source, partitions = Throttle(), Source(), [placed(number=number) for number in range(2)]
    budgets.follow([Budget(topic_class="bulk", bytes_per_second=40_000, slot_shares=(1.0,))], 0, 0.0)
    it = fetcher(source, partitions=0, budgets=budgets)
    it.assign(partitions)
    for partition in partitions:
        partition.obey(TopicPolicy(topic_class="bulk"))
    it.ask()
    shares = [partition.partition_max_bytes for topic in source.asked[0].topics for partition in topic.partitions]
    assert shares == [40_000 * BURST_SECONDS / 2] * 2
    budgets.take("bulk", 1_000_000)
    source.answer_without_news()
    it.ask()
    assert len(source.asked) == 1, "it has overdrawn its budget"


def test_a_reply_may_leave_out_only_partitions_of_which_all_is_known() -> None:
    source, partitions = Source(), [placed(number=number) for number in range(6)]
    it = fetcher(source, partitions=6)
    it.assign(partitions)

    def asked_anew() -> bool:
        it.ask()
        source.answer_without_news()
        request = source.asked[-1]
        assert request.session_epoch or [len(topic.partitions) for topic in request.topics] == [6]
        return bool(request.session_epoch == 0)

    assert asked_anew()
    assert asked_anew(), "the reply came and nobody took it"
    for partition in partitions:
        partition.cursor.heard(0, 0, 0)
    assert not asked_anew()
    partitions[3].block(Reason.SOURCE_UNREACHABLE, "its connection was cut", 0.0)
    assert asked_anew(), "else it would wait for the next record"
    partitions[3].clear()
    assert not asked_anew()
    it.assign([*partitions[:5], placed(number=5)])
    assert asked_anew(), "it was taken away and given back meanwhile"


@pytest.mark.parametrize(
    ("line_bytes_per_second", "size"),
    [(1e9, REPLY_BYTES[1]), (3e6, 4 << 20), (180e3, 256 << 10), (1.0, REPLY_BYTES[0])],
)
def test_a_reply_is_as_large_as_the_line_brings_in_time(line_bytes_per_second: float, size: int) -> None:
    it = fetcher(Source(), partitions=1)
    assert it.size_of(line_bytes_per_second) == size
    assert size <= max(REPLY_BYTES[0], line_bytes_per_second * REPLY_SECONDS)
