"""Bytes that are not what the producer wrote: never copied, whoever damaged them."""

from collections.abc import Callable

import pytest

from strait.reasons import Reason
from support.fixtures.waiting import eventually
from support.kafka.records import read_all
from support.links.engine_link import EngineLink
from support.links.far import FarCluster
from support.links.load import writing
from support.proxy.proxy import FETCH, PRODUCE

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]


@pytest.mark.parametrize("seed", [61])
def test_bits_that_flip_on_the_way_are_never_copied(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, seed: int
) -> None:
    """Batches pass without anybody here looking at their checksums: the destination's broker does, and refuses them."""
    link = make_link(source=far_source, destination=far_destination)
    link.make_topics()
    link.publish()
    link.start_slot()
    with writing(far_source, link.topics, seed=seed, per_second=3_000):
        eventually(lambda: link.copied() > 0, what=lambda: f"copying has begun: {link.log()}")
        for proxy, way, api, before_end in (
            (far_source.proxy, "reply", FETCH, 40),
            (far_destination.proxy, "request", PRODUCE, 40),
        ):
            flips = proxy.flip(way, api, before_end_bytes=before_end, least_bytes=4_000, times=10, chance=0.5)
            eventually(lambda flips=flips: flips() == 10, what=lambda: f"ten frames are damaged: {link.log()}")
    link.until_copied()
    link.assert_equal()


def test_what_is_damaged_on_the_sources_disk_stops_its_partition_until_it_is_mended(
    make_link: MakeLink, topic_name: str, far_source: FarCluster, far_destination: FarCluster
) -> None:
    link = make_link(topics={topic_name: 1}, source=far_source, destination=far_destination)
    link.make_topics()
    link.publish()
    with writing(link.source, link.topics, seed=62, records=3_000):
        pass
    (log,) = link.source.directory.rglob(f"{topic_name}-0/00000000000000000000.log")
    with log.open("r+b") as file:
        file.seek(-40, 2)
        byte = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte[0] ^ 1]))
    link.start_slot()
    row = link.until_waiting(topic_name, 0, Reason.CORRUPT_BATCH)
    assert "checksum" in row.detail
    with log.open("r+b") as file:
        file.seek(-40, 2)
        file.write(byte)
    (written,) = read_all(link.source, topic_name, 1)
    (copied,) = read_all(link.destination, topic_name, 1)
    assert copied == written[: len(copied)]
    link.until_copied()
    link.assert_equal()
