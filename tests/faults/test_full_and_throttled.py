"""A destination whose disk is full, and brokers that limit the copier."""

import random
import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.engine.dial import CLIENT_ID
from support.engine import EngineLink
from support.far import FarCluster
from support.load import writing
from support.upkeep import quotas
from support.waiting import eventually

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]

_FULL_BYTES = 12 << 20  # a broker makes index files of 10 MiB at once, and must still be able to


@pytest.mark.parametrize("seed", [61])
def test_a_full_disk_on_the_destination_is_waited_for(
    make_link: MakeLink, topic_name: str, far_source: FarCluster, tmp_path: Path, seed: int
) -> None:
    """The kernel lets no file of the broker grow beyond a limit: the write that reaches it is torn, as on a full disk, and
    the broker gives up its disk. Then there is room again, and it is started again."""
    with Cluster(tmp_path / "full") as destination:
        link = make_link(source=far_source, destination=destination, topics={topic_name: 2})
        link.make_topics()
        link.publish()
        slot = link.start_slot()
        fill(far_source, topic_name, seed=seed, megabytes=8)
        link.until_copied()
        broker = destination.pid(1)
        assert broker is not None
        _, hardest = resource.prlimit(broker, resource.RLIMIT_FSIZE)
        resource.prlimit(broker, resource.RLIMIT_FSIZE, (_FULL_BYTES, hardest))
        fill(far_source, topic_name, seed=seed + 1, megabytes=24)
        eventually(lambda: destination.pid(1) is None, what="the broker gives up")
        destination.start_broker(1)
        link.until_copied()
        link.assert_equal()
        assert slot.poll() is None, link.log()


def fill(cluster: Cluster, topic: str, *, seed: int, megabytes: int) -> None:
    """Records that do not compress, into both partitions in turn."""
    rng = random.Random(seed)
    producer = Producer(cluster.client_properties | {"linger.ms": 5})
    for number in range(megabytes * 20):
        producer.produce(topic, rng.randbytes(50_000), partition=number % 2)
        producer.poll(0)
    assert producer.flush(60) == 0


@pytest.mark.parametrize("end", ["source", "destination"])
@pytest.mark.parametrize("seed", [62])
def test_quotas_slow_the_copy_down_and_nothing_else(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, end: str, seed: int
) -> None:
    """Far below what is written: the broker holds its replies back and mutes the connection, and says for how long."""
    link = make_link(source=far_source, destination=far_destination)
    link.make_topics()
    link.publish()
    cluster, limit = {
        "source": (far_source, "consumer_byte_rate"),
        "destination": (far_destination, "producer_byte_rate"),
    }[end]
    racing = [link.start_slot(), link.start_slot()]
    with writing(far_source, link.topics, seed=seed, per_second=3_000):
        eventually(lambda: link.copied() > 0, what=lambda: f"copying has begun: {link.log()}")
        with quotas(cluster, CLIENT_ID, {limit: 300_000.0}):
            for _ in range(3):
                before = link.copied()
                eventually(lambda before=before: link.copied() > before + 500, what=lambda: f"it goes on: {link.log()}")
    link.until_copied()
    link.assert_equal()
    assert [slot.poll() for slot in racing] == [None, None], link.log()
