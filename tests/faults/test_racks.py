"""Slots that fetch from the replica in their own rack (KIP-392), while that replica stops, dies, sleeps and lags."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from strait.state.reader import StateReader
from strait.state.report_records import ZoneTraffic
from support.fixtures.clusters import Clusters
from support.fixtures.waiting import eventually
from support.kafka.administration import asleep, in_sync, leaders
from support.links.load import writing
from support.links.racked import (
    NEAR,
    NEAR_BROKER,
    RackedCluster,
    RackedLink,
    running_in_racks,
    share_of,
    since,
)

pytestmark = pytest.mark.broker

SOON = {
    "strait.engine.read_replicas:CHECK_SECONDS": 1.0,
    "strait.engine.read_replicas:REFUSED_SECONDS": 5.0,
    "strait.engine.zone_traffic:REPORT_SECONDS": 0.5,
}
MakeRackedLink = Callable[..., RackedLink]


@pytest.fixture(scope="module")
def racked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RackedCluster]:
    with running_in_racks(tmp_path_factory.mktemp("racked")) as cluster:
        yield cluster


@pytest.fixture
def make_racked_link(
    racked: RackedCluster, clusters: Clusters, tmp_path: Path, topic_name: str
) -> Iterator[MakeRackedLink]:
    """A link from the racked cluster with its topics made and its plan published."""
    made: list[RackedLink] = []

    def make(**settings: object) -> RackedLink:
        link = RackedLink(
            name=f"link-{topic_name[-8:]}",
            source=racked,
            destination=clusters.destination,
            folder=tmp_path,
            topics={topic_name: 6},
            **settings,
        )
        made.append(link)
        link.make_topics()
        link.publish()
        return link

    yield make
    for link in made:
        link.stop()
    racked.calm()


def test_nearly_all_bytes_come_from_the_slots_own_zone(
    make_racked_link: MakeRackedLink, racked: RackedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backlog and what is written meanwhile. The slot has its rack from its host, and tells what crosses zones."""
    monkeypatch.setenv("STRAIT_RACK", NEAR)
    link, before = make_racked_link(rack=None), racked.fetched_bytes()
    with writing(racked, link.topics, seed=71, per_second=1e9, records=10_000):
        pass
    link.start_slot(changed=SOON)
    with writing(racked, link.topics, seed=72, per_second=2_000, records=6_000):
        pass
    link.until_copied()
    link.assert_equal()
    fetched = since(before, racked)
    assert share_of(fetched) >= 0.95, fetched
    told = eventually(lambda: covers(traffic(link), sum(fetched.values())), what=lambda: f"{traffic(link)} {fetched}")
    near = sum(zone.bytes for zone in told if (zone.from_zone, zone.to_zone) == (NEAR, NEAR))
    every = sum(zone.bytes for zone in told if zone.cluster == "source" and zone.to_zone == NEAR)
    assert near / every >= 0.95, told


def traffic(link: RackedLink) -> tuple[ZoneTraffic, ...]:
    with StateReader(link.destination.client_properties, "destination", link.name, follow=("reports",)) as state:
        state.catch_up()
        return next((report.traffic for parts in state.reports.values() for report in parts), ())


def covers(told: tuple[ZoneTraffic, ...], fetched: int) -> tuple[ZoneTraffic, ...] | None:
    """What is told, once all that the proxies have seen is in it."""
    came = sum(zone.bytes for zone in told if zone.cluster == "source" and zone.to_zone == NEAR)
    return told if came >= fetched else None


@pytest.mark.parametrize("seed", [81, 82])
def test_nothing_is_lost_or_twice_while_replicas_stop_die_sleep_and_lag(
    make_racked_link: MakeRackedLink, racked: RackedCluster, topic_name: str, seed: int
) -> None:
    rng = random.Random(seed)
    link = make_racked_link(expire_ms=3_000)
    racing = [link.start_slot(changed=SOON), link.start_slot(changed=SOON)]
    everybody = [set(racked.broker_ids)] * 6
    with writing(racked, link.topics, seed=seed, per_second=2_000):
        for fault in rng.sample(["stop", "kill", "sleep", "lag"], 4):
            victim = rng.choice([NEAR_BROKER, NEAR_BROKER, *racked.broker_ids])
            before = racked.fetched_bytes()
            eventually(
                lambda before=before: since(before, racked)[NEAR_BROKER] > 100_000,
                what=lambda: f"it is read from near: {link.log()}",
            )
            inflict(fault, racked, victim, link)
            racked.calm()
            eventually(lambda: in_sync(racked, topic_name) == everybody, what="the replicas are in sync again")
    link.until_copied()
    link.assert_equal()
    assert not link.losses()
    assert [slot.poll() for slot in racing] == [None, None], link.log()


def inflict(fault: str, racked: RackedCluster, victim: int, link: RackedLink) -> None:
    """Until copying has gone on in spite of it."""

    def goes_on() -> None:
        before = link.copied()
        eventually(lambda: link.copied() > before + 2_000, what=lambda: f"it goes on after {fault}: {link.log()}")

    if fault == "sleep":
        with asleep(racked, victim):
            goes_on()
        return
    if fault == "lag":
        racked.keep_from_replicating(victim)
    elif fault == "kill":
        racked.kill(victim)
    else:
        racked.stop_broker(victim)
    goes_on()


def test_a_follower_that_falls_behind_is_left_for_the_leader(
    make_racked_link: MakeRackedLink, racked: RackedCluster, topic_name: str
) -> None:
    """It goes on answering, with nothing new; kept to until the choice expires, it would hold the copy up for minutes."""
    link = make_racked_link()
    link.start_slot(changed=SOON)
    before = racked.fetched_bytes()
    with writing(racked, link.topics, seed=91, per_second=1e9, records=2_000):
        pass
    link.until_copied()
    assert share_of(since(before, racked)) > 0.5
    racked.keep_from_replicating(NEAR_BROKER)
    with writing(racked, link.topics, seed=92, per_second=1e9, records=2_000):
        pass
    link.until_copied()
    for leader, replicas in zip(leaders(racked, topic_name), in_sync(racked, topic_name), strict=True):
        assert (NEAR_BROKER in replicas) == (leader == NEAR_BROKER), "it lags still"
    link.assert_equal()


def test_another_replica_is_chosen_when_the_choice_expires(
    make_racked_link: MakeRackedLink, racked: RackedCluster, topic_name: str
) -> None:
    """The leader was read from while the near replica was away."""
    link = make_racked_link(expire_ms=1_000)
    racked.kill(NEAR_BROKER)
    eventually(lambda: in_sync(racked, topic_name) == [{1, 3}] * 6, what="the others are in sync alone")
    link.start_slot(changed=SOON)
    with writing(racked, link.topics, seed=93, per_second=1_000):
        eventually(lambda: link.copied() > 1_000, what=lambda: f"it copies: {link.log()}")
        racked.start_broker(NEAR_BROKER)
        before = racked.fetched_bytes()
        eventually(lambda: since(before, racked)[NEAR_BROKER] > 100_000, what=lambda: f"it is read from: {link.log()}")
    link.until_copied()
    link.assert_equal()
