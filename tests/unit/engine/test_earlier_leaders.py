"""Which leader of a partition is believed when brokers name different ones."""

import uuid
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from strait.net.buffers import BufferPool
from strait.net.cluster_client import ClusterClient, Leader
from strait.net.earlier_leaders import LAGGING_SECONDS, LOST_SECONDS
from strait.net.event_loop import Loop

ORDERS = ("orders", 0)


@pytest.fixture
def loop() -> Iterator[Loop]:
    found = Loop()
    yield found
    found.close()


@pytest.fixture
def cluster(loop: Loop) -> Iterator[ClusterClient]:
    found = ClusterClient(loop, BufferPool(1 << 20), "it", {"bootstrap.servers": "broker:1"})
    yield found
    found.close()


def metadata(cluster: ClusterClient, leader: Leader, topic_id: uuid.UUID | None = None) -> Leader:
    """A broker names this leader; the one that is believed."""
    partition = SimpleNamespace(partition_index=0, leader_id=leader.node, leader_epoch=leader.epoch)
    topic = SimpleNamespace(name="orders", error_code=0, topic_id=topic_id, partitions=[partition])
    cluster._learn(topic)
    return cluster.leaders[ORDERS]


def test_a_topic_without_an_id_whose_epochs_began_again_is_followed(loop: Loop, cluster: ClusterClient) -> None:
    old, new = Leader(1, 5), Leader(2, 0)
    assert metadata(cluster, old) == old
    assert metadata(cluster, new) == old, "the broker may lag behind"
    loop.now += LAGGING_SECONDS
    assert metadata(cluster, new) == new
    assert metadata(cluster, Leader(3, 1)) == Leader(3, 1)


def test_a_broker_that_lags_for_long_is_not_believed_while_others_know_better(
    loop: Loop, cluster: ClusterClient
) -> None:
    old, newer = Leader(1, 4), Leader(2, 5)
    metadata(cluster, newer)
    for _ in range(5):
        assert metadata(cluster, old) == newer
        loop.now += LAGGING_SECONDS / 2
        assert metadata(cluster, newer) == newer


def test_a_leader_that_no_broker_names_any_more_is_not_followed_for_ever(loop: Loop, cluster: ClusterClient) -> None:
    topic_id = uuid.UUID(int=7)
    metadata(cluster, Leader(2, 5), topic_id)
    metadata(cluster, Leader(1, 4), topic_id)
    loop.now += LAGGING_SECONDS
    assert metadata(cluster, Leader(1, 4), topic_id) == Leader(2, 5), "the topic is the same, so the broker may lag"
    assert cluster._earlier_leaders.doubted(loop.now), "another broker is asked"
    loop.now += LOST_SECONDS
    assert metadata(cluster, Leader(1, 4), topic_id) == Leader(1, 4)
    assert metadata(cluster, Leader(3, 5), topic_id) == Leader(3, 5)


def test_epochs_that_go_backwards_for_a_moment_change_nothing(loop: Loop, cluster: ClusterClient) -> None:
    topic_id = uuid.UUID(int=7)
    metadata(cluster, Leader(2, 5), topic_id)
    for _ in range(9):
        loop.now += LOST_SECONDS / 2
        assert metadata(cluster, Leader(1, -1), topic_id) == Leader(2, 5)
        assert metadata(cluster, Leader(2, 5), topic_id) == Leader(2, 5)
