"""A destination whose disk is full, and brokers that limit the copier."""

import random
import resource
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.net.handshake import CLIENT_ID
from support.fixtures.waiting import eventually
from support.kafka.administration import quotas
from support.kafka.small_disk import can_mount, small_disk
from support.links.engine_link import EngineLink
from support.links.far import FarCluster
from support.links.load import writing

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]

_FULL_BYTES = 12 << 20  # a broker makes index files of 10 MiB at once, and must still be able to
_ROOM_BYTES = 400 << 20


@pytest.mark.parametrize("seed", [61])
@pytest.mark.parametrize("limit", ["size of a file", "disk"] if can_mount() else ["size of a file"])
def test_a_full_disk_on_the_destination_is_waited_for(
    make_link: MakeLink, topic_name: str, far_source: FarCluster, tmp_path: Path, limit: str, seed: int
) -> None:
    """The write that reaches the limit is torn, and the broker gives up its disk. Then there is room again, and it is
    started again. Without the right to mount a disk, the kernel is told to let no file of the broker grow further: the
    broker does the same."""
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(tmp_path / "disk", _ROOM_BYTES)) if limit == "disk" else None
        destination = stack.enter_context(Cluster(tmp_path / "full"))
        if disk is not None:
            move_data(destination, disk.folder)
        link = make_link(source=far_source, destination=destination, topics={topic_name: 2})
        link.make_topics()
        link.publish()
        slot = link.start_slot()
        fill(far_source, topic_name, seed=seed, megabytes=8)
        link.until_copied()
        if disk is not None:
            disk.resize(free_bytes=_FULL_BYTES)
        else:
            let_no_file_grow(destination)
        fill(far_source, topic_name, seed=seed + 1, megabytes=24)
        eventually(lambda: destination.pid(1) is None, what="the broker gives up")
        if disk is not None:
            assert "No space left on device" in destination.log(1).read_text(encoding="utf-8")
            disk.resize(free_bytes=_ROOM_BYTES)
        destination.start_broker(1)
        link.until_copied()
        link.assert_equal()
        assert slot.poll() is None, link.log()


def move_data(cluster: Cluster, disk: Path) -> None:
    """Let its broker keep its data there."""
    data = cluster.directory / "broker-1" / "data"
    cluster.stop_broker(1)
    shutil.move(data, disk / "data")
    data.symlink_to(disk / "data")
    cluster.start_broker(1)


def let_no_file_grow(cluster: Cluster) -> None:
    broker = cluster.pid(1)
    assert broker is not None
    _, hardest = resource.prlimit(broker, resource.RLIMIT_FSIZE)
    resource.prlimit(broker, resource.RLIMIT_FSIZE, (_FULL_BYTES, hardest))


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


@pytest.mark.parametrize("seed", [63])
def test_old_records_under_a_quota_are_written_once_by_two_copies(
    make_link: MakeLink, far_source: FarCluster, tmp_path: Path, seed: int
) -> None:
    """The quota lets one copy wait for longer than the other one takes to go on in its place, again and again. The broker
    forgets both every two seconds, 300 times as often as by default. Not more often: the half second for which a look-up
    holds is a window that is left (ADR 12)."""
    with Cluster(
        tmp_path / "forgetful", properties={"producer.id.expiration.check.interval.ms": "2000"}
    ) as destination:
        link = make_link(source=far_source, destination=destination)
        link.make_topics()
        link.publish()
        racing = [link.start_slot(), link.start_slot()]
        with (
            quotas(destination, CLIENT_ID, {"producer_byte_rate": 60_000.0}),
            writing(far_source, link.topics, seed=seed, per_second=1_000, age_seconds=2 * 86_400.0),
        ):
            for _ in range(6):
                before = link.copied()
                eventually(lambda before=before: link.copied() > before + 200, what=lambda: f"it goes on: {link.log()}")
        link.until_copied()
        link.assert_equal()
        assert [slot.poll() for slot in racing] == [None, None], link.log()
