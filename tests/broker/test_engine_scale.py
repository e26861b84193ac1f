"""Many partitions in one slot, a huge one among small ones, and bandwidth budgets, on real brokers."""

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.net.handshake import CLIENT_ID
from strait.state.schema import Budget, TopicPolicy
from support.fixtures.clusters import Clusters
from support.fixtures.waiting import eventually
from support.kafka.administration import put_on, quotas
from support.kafka.log_ends import ends
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
BACKLOG = 50_000
"""Records on each broker."""


@pytest.fixture
def three_brokers(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "three", brokers=3) as cluster:
        yield cluster


@pytest.fixture
def five_brokers(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "five", brokers=5) as cluster:
        yield cluster


def write(link: EngineLink, topic: str, records: int, *, size: int, seed: int) -> None:
    """Records spread over all partitions at random."""
    rng = random.Random(seed)
    payload = rng.randbytes(1 << 20)
    producer = Producer(link.source.client_properties | {"linger.ms": 20, "queue.buffering.max.messages": 1_000_000})
    for number in range(records):
        start = rng.randrange(len(payload) - size)
        producer.produce(topic, payload[start : start + size], partition=rng.randrange(link.topics[topic]))
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


@pytest.mark.timeout(1200)
def test_two_thousand_partitions_on_five_brokers(
    make_link: MakeLink, topic_name: str, five_brokers: Cluster, clusters: object
) -> None:
    """Most of them idle, some written to again and again: fetch sessions name only what changed, and miss nothing."""
    destination = clusters.destination  # type: ignore[attr-defined]
    link = make_link(
        topics={f"{topic_name}-{part}": 400 for part in range(5)}, source=five_brokers, destination=destination
    )
    link.make_topics(source_replicas=1)  # six thousand logs would be tried instead of the sessions
    link.publish()
    link.start_slot()
    for turn in range(2):
        for topic in link.topics:
            write(link, topic, 2_000, size=50, seed=turn)
        link.until_copied(within_seconds=240.0)
    link.assert_equal()


def test_small_partitions_keep_up_beside_a_huge_backlog(make_link: MakeLink, topic_name: str) -> None:
    huge, small = f"{topic_name}-huge", f"{topic_name}-small"
    link = make_link(topics={huge: 1, small: 20}, slot_memory_bytes=32 << 20)
    link.make_topics()
    write(link, huge, 300_000, size=1_000, seed=1)
    slowly = Budget(topic_class="bulk", bytes_per_second=20_000_000, slot_shares=(1.0,))  # so that it lasts
    link.publish(policies={huge: TopicPolicy(topic_class="bulk")}, budgets=(slowly,))
    link.start_slot()
    eventually(lambda: ends(link.destination, huge, 1)[0] > 0, what="the backlog is being copied")
    write(link, small, 2_000, size=100, seed=2)
    eventually(lambda: sum(ends(link.destination, small, 20)) == 2_000, what="the small ones have caught up")
    assert ends(link.destination, huge, 1)[0] < 300_000, "the backlog was gone before the small ones came: no test"
    link.until_copied()
    link.assert_equal()


def test_source_brokers_share_a_slow_destination_and_live_partitions_pass_beside_their_backlogs(
    make_link: MakeLink, topic_name: str, three_brokers: Cluster, clusters: Clusters
) -> None:
    huge = {broker: f"{topic_name}-huge-{broker}" for broker in three_brokers.broker_ids}
    live = {broker: f"{topic_name}-live-{broker}" for broker in three_brokers.broker_ids}
    topics = dict.fromkeys(huge.values(), 4) | dict.fromkeys(live.values(), 1)
    link = make_link(topics=topics, source=three_brokers, destination=clusters.destination, slot_memory_bytes=16 << 20)
    link.make_topics()
    for broker in three_brokers.broker_ids:
        put_on(three_brokers, huge[broker], [broker], 4)
        put_on(three_brokers, live[broker], [broker])
        write(link, huge[broker], BACKLOG, size=1_000, seed=broker)

    def copied() -> dict[int, int]:
        return {broker: sum(ends(link.destination, topic, 4)) for broker, topic in huge.items()}

    link.publish()
    with quotas(link.destination, CLIENT_ID, {"producer_byte_rate": 1e6}):
        link.start_slot()
        eventually(lambda: sum(copied().values()) > BACKLOG // 10, what="the memory is full of the backlogs")
        for number in range(1, 4):
            for topic in live.values():
                write(link, topic, 1, size=100, seed=number)
            eventually(
                lambda number=number: all(ends(link.destination, topic, 1) == [number] for topic in live.values()),
                what=lambda: f"the live records pass: {link.log()}",
            )
        assert max(copied().values()) < BACKLOG, "a backlog was gone before the live records came: no test"

        def fair() -> bool:
            found = copied().values()
            assert max(found) < BACKLOG, f"a backlog was gone before the others had their share: {found}"
            return min(found) >= 0.5 * sum(found) / len(found)

        eventually(fair, what="each broker has its share")
    link.until_copied()
    link.assert_equal()


def test_a_budget_is_kept_and_changed_live_and_hinders_no_other_class(make_link: MakeLink, topic_name: str) -> None:
    """Only the upper bound is held here: how fast it could be depends on the machine. benchmarks/ has the rest."""
    slow, free = f"{topic_name}-slow", f"{topic_name}-free"
    link = make_link(topics={slow: 3, free: 3})
    link.make_topics()
    for topic in (slow, free):
        write(link, topic, 8_000, size=1_000, seed=3)
    budget = Budget(topic_class="bulk", bytes_per_second=500_000, slot_shares=(1.0,))
    link.publish(policies={slow: TopicPolicy(topic_class="bulk")}, budgets=(budget,))
    started_at = time.monotonic()
    link.start_slot()
    eventually(lambda: sum(ends(link.destination, free, 3)) == 8_000, what="the class without a budget is copied")
    copied = sum(ends(link.destination, slow, 3))
    allowed = 500_000 * (time.monotonic() - started_at) * 1.1 + 1_000_000  # one batch for each partition comes at once
    assert copied * 1_000 <= allowed
    assert copied < 8_000, "the budget was never felt: no test"
    link.publish(
        policies={slow: TopicPolicy(topic_class="bulk")},
        budgets=(budget.model_copy(update={"bytes_per_second": 100_000_000}),),
    )
    link.until_copied()
    link.assert_equal()
