"""Which leader of a partition is believed when brokers name different ones."""

import uuid
from types import SimpleNamespace

import pytest

from strait.net.known_topics import LAGGING_SECONDS, LOST_SECONDS, KnownTopics, Leader

ORDERS = ("orders", 0)


class Cluster:
    """The topics of a cluster, and a clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.topics = KnownTopics()


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def metadata(cluster: Cluster, leader: Leader, topic_id: uuid.UUID | None = None) -> Leader:
    """A broker names this leader; the one that is believed."""
    partition = SimpleNamespace(partition_index=0, leader_id=leader.node, leader_epoch=leader.epoch)
    topic = SimpleNamespace(name="orders", error_code=0, topic_id=topic_id, partitions=[partition])
    cluster.topics.learn(topic, cluster.now)
    return cluster.topics.leaders[ORDERS]


def test_a_topic_without_an_id_whose_epochs_began_again_is_followed(cluster: Cluster) -> None:
    old, new = Leader(1, 5), Leader(2, 0)
    assert metadata(cluster, old) == old
    assert metadata(cluster, new) == old, "the broker may lag behind"
    cluster.now += LAGGING_SECONDS
    assert metadata(cluster, new) == new
    assert metadata(cluster, Leader(3, 1)) == Leader(3, 1)


def test_a_broker_that_lags_for_long_is_not_believed_while_others_know_better(cluster: Cluster) -> None:
    old, newer = Leader(1, 4), Leader(2, 5)
    metadata(cluster, newer)
    for _ in range(5):
        assert metadata(cluster, old) == newer
        cluster.now += LAGGING_SECONDS / 2
        assert metadata(cluster, newer) == newer


def test_a_leader_that_no_broker_names_any_more_is_not_followed_for_ever(cluster: Cluster) -> None:
    topic_id = uuid.UUID(int=7)
    metadata(cluster, Leader(2, 5), topic_id)
    metadata(cluster, Leader(1, 4), topic_id)
    cluster.now += LAGGING_SECONDS
    assert metadata(cluster, Leader(1, 4), topic_id) == Leader(2, 5), "the topic is the same, so the broker may lag"
    assert cluster.topics.doubted(cluster.now), "another broker is asked"
    cluster.now += LOST_SECONDS
    assert metadata(cluster, Leader(1, 4), topic_id) == Leader(1, 4)
    assert metadata(cluster, Leader(3, 5), topic_id) == Leader(3, 5)


def test_epochs_that_go_backwards_for_a_moment_change_nothing(cluster: Cluster) -> None:
    topic_id = uuid.UUID(int=7)
    metadata(cluster, Leader(2, 5), topic_id)
    for _ in range(9):
        cluster.now += LOST_SECONDS / 2
        assert metadata(cluster, Leader(1, -1), topic_id) == Leader(2, 5)
        assert metadata(cluster, Leader(2, 5), topic_id) == Leader(2, 5)
