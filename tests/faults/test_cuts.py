"""Connections cut at every step of the protocol: the copy goes on by itself and ends equal, record by record."""

import random
from collections.abc import Callable

import pytest

from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink
from support.links.far import FarCluster
from support.links.load import writing
from support.proxy.frames import Way
from support.proxy.proxy import API_VERSIONS, DESCRIBE_PRODUCERS, FETCH, LIST_OFFSETS, METADATA, PRODUCE, Proxy

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
PLACES = (0, 3, 11, None, None, 1 << 30)
STEPS: dict[str, tuple[int, ...]] = {
    "source": (API_VERSIONS, METADATA, FETCH),
    "destination": (API_VERSIONS, METADATA, LIST_OFFSETS, DESCRIBE_PRODUCERS, PRODUCE),
}


@pytest.mark.parametrize("seed", [17])
@pytest.mark.parametrize("way", ["request", "reply"])
@pytest.mark.parametrize("end", ["source", "destination"])
def test_a_connection_cut_after_any_byte_of_any_step_costs_nothing(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, end: str, way: Way, seed: int
) -> None:
    """Before a frame's first byte, within its length, within its header, anywhere in it, and after its last byte."""
    rng = random.Random(seed)
    link = make_link(source=far_source, destination=far_destination)
    link.make_topics()
    link.publish()
    link.start_slot()
    proxy = {"source": far_source, "destination": far_destination}[end].proxy
    with writing(far_source, link.topics, seed=seed):
        eventually(lambda: link.copied() > 0, what=lambda: f"copying has begun: {link.log()}")
        places = [(api, place) for api in STEPS[end] for place in rng.sample(PLACES, 3)]
        places += [(api, place) for api in {FETCH, PRODUCE} & set(STEPS[end]) for place in PLACES]
        rng.shuffle(places)
        for api, place in places:
            cut_once(link, proxy, way, api, place)
    link.until_copied()
    link.assert_equal()


def cut_once(link: EngineLink, proxy: Proxy, way: Way, api: int, after_bytes: int | None) -> None:
    """One cut at this step, reached by losing every connection before, and copying again after it."""
    cuts = proxy.cut(way, api, after_bytes=after_bytes)
    if api not in (FETCH, PRODUCE):  # those two come by themselves
        proxy.cut_all()
    eventually(lambda: cuts() == 1, what=lambda: f"a {way} of API {api} is cut after {after_bytes}: {link.log()}")
    before = link.copied()
    eventually(lambda: link.copied() > before, what=lambda: f"copying goes on after a cut in API {api}: {link.log()}")


@pytest.mark.parametrize("seed", [18])
def test_cuts_at_random_all_the_time(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, seed: int
) -> None:
    """Two racing copies, every client's connections, both ways, both ends."""
    link = make_link(source=far_source, destination=far_destination)
    link.make_topics()
    link.publish()
    racing = [link.start_slot(), link.start_slot()]
    cuts = [
        cluster.proxy.cut(way, times=None, chance=chance, client="")
        for cluster, chance in ((far_source, 0.1), (far_destination, 0.03))
        for way in ("request", "reply")
    ]
    with writing(far_source, link.topics, seed=seed, per_second=10_000, records=80_000):
        eventually(lambda: sum(cut() for cut in cuts) > 50, what=lambda: f"many cuts: {link.log()}")
    far_source.proxy.calm()
    far_destination.proxy.calm()
    link.until_copied()
    link.assert_equal()
    assert [slot.poll() for slot in racing] == [None, None], link.log()
