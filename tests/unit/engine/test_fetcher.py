"""When more is asked for, and how much."""

from typing import Any

import pytest

from strait.engine.fetch_set import FetchSet
from strait.engine.fetcher import QUIET_LINE, REPLY_BYTES, REPLY_SECONDS
from strait.engine.partition.partition import Partition
from strait.engine.throttle import BURST_SECONDS, Throttle
from strait.net.buffers import BufferPool
from strait.net.event_loop import Loop
from strait.reasons import Reason
from strait.state.schema import Budget, PlannedBackfill, TopicPolicy
from support.model.fetching import Source, caught_up, fetcher, some
from support.model.partitions import placed


def test_the_next_request_goes_out_in_the_turn_in_which_a_reply_came() -> None:
    """However many partitions there are."""
    source = Source()
    it = fetcher(source, some(2_000))
    it.ask()
    it.ask()
    assert len(source.open) == 1, "one at a time"
    source.answer_without_news()
    it.ask()
    assert len(source.open) == 1


def test_a_topic_that_changes_its_class_is_held_to_the_new_one_before_anything_is_assigned_anew() -> None:
    """That waits for metadata, where the same plan brings a topic that has no leader yet."""
    budgets, source, partitions = Throttle(), Source(), some(2)
    budgets.follow([Budget(topic_class="bulk", bytes_per_second=40_000, slot_shares=(1.0,))], 0, 0.0)
    it = fetcher(source, partitions, budgets=budgets)
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
    source, partitions = Source(), some(6)
    it = fetcher(source, partitions)

    def asks() -> Any:
        it.ask()
        source.answer_without_news()
        return source.asked[-1]

    def named(request: Any) -> set[int]:
        return {item.partition for topic in request.topics for item in topic.partitions}

    def forgotten(request: Any) -> set[int]:
        return {number for topic in request.forgotten_topics_data for number in topic.partitions}

    every = set(range(6))
    for what in ("the first request", "the reply named none of them"):
        request = asks()
        assert (request.session_epoch, named(request)) == (0, every), what
    for partition in partitions:
        partition.cursor.heard(0, 0, 0)
    asks()
    partitions[3].block(Reason.SOURCE_UNREACHABLE, "its connection was cut", 0.0)
    request = asks()
    assert (request.session_epoch > 0, request.max_wait_ms, forgotten(request)) == (True, 0, {3})
    assert named(asks()) == {3}, "a reply names what is asked for anew; else it would wait for the next record"
    partitions[3].clear()
    request = asks()
    assert not named(request)
    assert not forgotten(request)
    it.remove(partitions[5])
    it.add(placed(number=5))
    assert forgotten(asks()) == {5}
    assert named(asks()) == {5}, "it was taken away and given back meanwhile"


def test_a_round_looks_at_what_has_changed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    source, partitions = Source(), caught_up(2_000)
    it = fetcher(source, partitions)
    it.ask()
    source.answer_without_news()
    looked_at: list[Partition] = []
    judge = FetchSet._judge

    def counted(these: FetchSet, member: Any, *rest: Any) -> Any:
        looked_at.append(member.partition)
        return judge(these, member, *rest)

    monkeypatch.setattr(FetchSet, "_judge", counted)
    it.ask()
    source.answer_without_news()
    assert not looked_at
    partitions[7].cursor.stamped(3, 3, 3, 0)
    partitions[8].block(Reason.SOURCE_UNREACHABLE, "", 1e9)
    it.ask()
    assert set(looked_at) == {partitions[7], partitions[8]}
    (topic,) = source.asked[-1].topics
    assert [(item.partition, item.fetch_offset) for item in topic.partitions] == [(7, 3)]
    assert [topic.partitions for topic in source.asked[-1].forgotten_topics_data] == [[8]]


def test_what_is_blocked_for_a_while_is_asked_for_when_that_is_over() -> None:
    source, partitions, loop = Source(), caught_up(2), Loop()
    it = fetcher(source, partitions, loop=loop)
    partitions[0].block(Reason.SOURCE_UNREACHABLE, "", loop.now + 5.0)
    partitions[1].reset_position(None, "", loop.now + 10.0)

    def asked() -> set[int]:
        it.ask()
        if not source.open:
            return set()
        source.answer_without_news()
        return {item.partition for topic in source.asked[-1].topics for item in topic.partitions}

    assert asked() == set()
    loop.now += 4.9
    assert asked() == set()
    loop.now += 0.2
    assert asked() == {0}
    loop.now += 10.0
    asked()
    assert source.asked[-1].max_wait_ms == 50, "the other one's position may be found at any moment"


@pytest.mark.parametrize(
    ("line_bytes_per_second", "size"),
    [(1e9, REPLY_BYTES[1]), (3e6, 4 << 20), (180e3, 256 << 10), (1.0, REPLY_BYTES[0])],
)
def test_a_reply_is_as_large_as_the_line_brings_in_time(line_bytes_per_second: float, size: int) -> None:
    it = fetcher(Source(), some(1))
    assert it.size_of(line_bytes_per_second) == size
    assert size <= max(REPLY_BYTES[0], line_bytes_per_second * REPLY_SECONDS)


@pytest.mark.parametrize(
    ("budget_mib", "round_trip_seconds"), [(16, 0.0), (32, 0.0), (128, 0.0), (128, 0.1), (128, 1.0)]
)
def test_what_lags_is_asked_for_after_batches_were_rebuilt(budget_mib: int, round_trip_seconds: float) -> None:
    """There is room for a reply twice then, which the largest reply must not exceed: nothing but a large reply ends it."""
    pool, source, partitions = BufferPool(budget_mib << 20), Source(), some(2)
    source.round_trip_seconds = round_trip_seconds
    it = fetcher(source, partitions, pool=pool)
    it._line_bytes_per_second = 1e9
    for partition in partitions:
        partition.cursor.heard(1_000, 1_000, 0)
    pool.adopt(bytearray(100)).release()
    it.ask()
    (request,) = source.asked
    assert {item.partition for topic in request.topics for item in topic.partitions} == {0, 1}


@pytest.mark.parametrize("fetchers", [1, 40, 1_000])
@pytest.mark.parametrize("line", [0, QUIET_LINE])
def test_however_many_fetchers_share_little_memory_each_asks_after_batches_were_rebuilt(
    fetchers: int, line: int
) -> None:
    pool, source = BufferPool(16 << 20), Source()
    it = fetcher(source, some(2), line=line, pool=pool)
    it.fit(fetchers)
    pool.adopt(bytearray(100)).release()
    it.ask()
    (request,) = source.asked
    assert 0 < request.max_bytes <= 16 << 20


class Away(Source):
    """A broker that has closed the connection, as after ten minutes without a request."""

    def channel(self, *_: int) -> None:
        self.dialled = True

    def trouble(self, *_: int) -> str:
        return "the broker closed the connection"


def test_outside_its_hours_nothing_is_asked_and_no_closed_connection_is_a_reason() -> None:
    hour = [12 * 3_600_000]
    budgets, source, partitions = Throttle(lambda: hour[0]), Away(), caught_up(2)
    budgets.follow([], 0, 0.0, PlannedBackfill(hours=("22:00-06:00",), timezone="UTC"))
    it = fetcher(source, partitions, budgets=budgets)
    it.ask()
    assert not hasattr(source, "dialled")
    assert all(partition.reason is None for partition in partitions)
