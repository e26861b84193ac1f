"""Requests that arrive when their sender has given them up and gone on: zombies, the case that compare-and-append is
for."""

import random
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from strait.reasons import Reason
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.links.engine_link import EngineLink
from support.links.far import FarCluster, running
from support.links.load import writing
from support.proxy.proxy import PRODUCE

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
TWO_DAYS_SECONDS = 2 * 86_400.0


@pytest.fixture(scope="module")
def far_forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FarCluster]:
    """Forgets producers after a day, as brokers do, and looks for such ones all the time. Behind a proxy."""
    properties = {"producer.id.expiration.check.interval.ms": "100"}
    cluster = FarCluster(tmp_path_factory.mktemp("far-forgetful"), properties=properties)
    with running(cluster):
        yield cluster


@pytest.mark.parametrize("slots", [1, pytest.param(2, marks=pytest.mark.core), 3])
@pytest.mark.parametrize("seed", [21])
def test_zombie_requests_add_nothing_twice_and_nothing_out_of_order(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, seed: int, slots: int
) -> None:
    """Held between nothing and two seconds: before the look-up, between it and the next batch, and long after. With
    ``slots`` copies that race for the same partitions all the time."""
    rng = random.Random(seed)
    link = make_link(source=far_source, destination=far_destination)
    link.make_topics()
    link.publish()
    racing = [link.start_slot() for _ in range(slots)]
    with writing(far_source, link.topics, seed=seed):
        eventually(lambda: link.copied() > 0, what=lambda: f"copying has begun: {link.log()}")
        for _ in range(12):
            seconds = rng.choice([0.0, 0.02, 0.1, 0.4, 2.0])
            held = far_destination.proxy.hold(
                PRODUCE, seconds=seconds, skip=rng.randrange(5), times=rng.randrange(1, 4)
            )
            eventually(lambda held=held: held() > 0, what=lambda: f"a request is held: {link.log()}")
            before = link.copied()
            eventually(lambda before=before: link.copied() > before, what=lambda: f"it goes on: {link.log()}")
    link.until_copied()
    link.assert_equal()
    assert [slot.poll() for slot in racing] == [None] * slots, link.log()


@pytest.mark.parametrize("dies", [False, True])
def test_a_late_request_with_records_that_the_broker_forgets_at_once(
    make_link: MakeLink, far_source: FarCluster, far_forgetful: FarCluster, topic_name: str, *, dies: bool
) -> None:
    """It arrives after a look-up did not find it, and nothing but waiting for it keeps its records from being appended
    twice: the broker compares nothing."""
    link = make_link(source=far_source, destination=far_forgetful, topics={topic_name: 2})
    link.make_topics()
    link.publish()
    writer = link.start_slot()
    with writing(far_source, link.topics, seed=26, age_seconds=TWO_DAYS_SECONDS):
        for seconds in (0.3, 1.0, 2.0):
            before = link.copied()
            eventually(lambda before=before: link.copied() > before + 1000, what=lambda: f"it copies: {link.log()}")
            if dies:
                standby = link.start_slot()
                link.until_waiting(topic_name, 0, Reason.ANOTHER_COPY)
            held = far_forgetful.proxy.hold(PRODUCE, seconds=seconds)
            eventually(lambda held=held: held() > 0, what=lambda: f"a request is held: {link.log()}")
            if dies:
                link.kill(writer)
                writer = standby
    link.until_copied()
    link.assert_equal()


def test_a_late_request_after_the_source_was_silent(
    make_link: MakeLink, far_source: FarCluster, far_forgetful: FarCluster, topic_name: str
) -> None:
    """The standby has seen nothing come for a while already when the last request of the copy that dies is sent."""
    link = make_link(source=far_source, destination=far_forgetful, topics={topic_name: 1})
    link.make_topics()
    link.publish()
    writer = link.start_slot()
    with writing(far_source, link.topics, seed=27, age_seconds=TWO_DAYS_SECONDS):
        eventually(lambda: link.copied() > 1000, what=lambda: f"it copies: {link.log()}")
        link.start_slot()
        link.until_waiting(topic_name, 0, Reason.ANOTHER_COPY)
    link.until_copied()
    time.sleep(2.5)
    held = far_forgetful.proxy.hold(PRODUCE, seconds=2.0)
    with writing(far_source, link.topics, seed=28, records=10, age_seconds=TWO_DAYS_SECONDS):
        eventually(lambda: held() > 0, what=lambda: f"a request is held: {link.log()}")
        link.kill(writer)
    link.until_copied()
    time.sleep(3.0)  # the late one arrives, if it was not the first
    link.assert_equal()


@pytest.mark.parametrize("seed", [25])
def test_a_dead_slots_request_arrives_after_its_death(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, seed: int
) -> None:
    """And so does that of the slot after it: what nobody alive remembers counts, once."""
    link = make_link(source=far_source, destination=far_destination, topics={"alone." + str(seed): 1})
    link.make_topics()
    link.publish()
    with writing(far_source, link.topics, seed=seed, records=2_000):
        pass
    for _ in range(2):
        held = far_destination.proxy.hold(PRODUCE, seconds=3.0)
        slot = link.start_slot()
        eventually(lambda held=held: held() == 1, what=lambda: f"its first request is held: {link.log()}")
        link.kill(slot)
        before = link.copied()
        eventually(lambda before=before: link.copied() > before, what="the request arrives, and counts")
    link.start_slot()
    link.until_copied()
    link.assert_equal()


@pytest.mark.parametrize("seed", [22])
def test_a_request_that_arrives_after_its_time_out(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, seed: int
) -> None:
    """The slot waits for the reply as long as it ever would, gives up, goes on; then the broker gets it."""
    link = make_link(source=far_source, destination=far_destination)
    link.make_topics()
    link.publish()
    link.start_slot()
    with writing(far_source, link.topics, seed=seed):
        for _ in range(2):
            held = far_destination.proxy.hold(PRODUCE, seconds=0.5, until_it_leaves=True)
            eventually(lambda held=held: held() == 1, what=lambda: f"a request is held: {link.log()}")
            before = link.copied()
            eventually(lambda before=before: link.copied() > before + 1000, what=lambda: f"it goes on: {link.log()}")
    link.until_copied()
    link.assert_equal()


@pytest.mark.parametrize("seed", [23])
def test_a_network_that_stalls_forgets_and_refuses(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, seed: int
) -> None:
    """Also in silence: what is open arrives nowhere any more. Nobody waits for a time-out of half a minute then."""
    rng = random.Random(seed)
    link = make_link(source=far_source, destination=far_destination)
    link.make_topics()
    link.publish()
    link.start_slot()
    with writing(far_source, link.topics, seed=seed):
        for proxy in rng.sample([far_source.proxy, far_destination.proxy] * 2, 4):
            eventually(lambda: link.copied() > 0, what=lambda: f"copying has begun: {link.log()}")
            for fault in rng.sample([proxy.forget_all, proxy.stall, proxy.refuse, proxy.cut_all], 2):
                fault()
            before = link.written()
            eventually(lambda before=before: link.written() > before + 5_000, what="the source goes on meanwhile")
            proxy.calm()
            before = link.copied()
            eventually(
                lambda before=before: link.copied() > before + 1000,
                what=lambda: f"it goes on: {link.log()}",
                within_seconds=29.0,  # on a busy machine; a few on an idle one
            )
    link.until_copied()
    link.assert_equal()


@pytest.mark.parametrize("seed", [24])
def test_a_slow_and_distant_network(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, seed: int
) -> None:
    """100 ms there and back on both sides, then 2 MB/s besides, then cuts besides."""
    link = make_link(source=far_source, destination=far_destination)
    link.make_topics()
    link.publish()
    proxies = (far_source.proxy, far_destination.proxy)
    for proxy in proxies:
        proxy.delay(0.1)
    link.start_slot()
    with writing(far_source, link.topics, seed=seed, records=20_000):
        eventually(lambda: link.copied() > 0, what=lambda: f"copying has begun: {link.log()}")
        for proxy in proxies:
            proxy.limit(2e6)
        cuts = [proxy.cut(way, times=None, chance=0.1) for proxy in proxies for way in ("request", "reply")]
        eventually(lambda: sum(cut() for cut in cuts) > 10, what=lambda: f"some cuts: {link.log()}")
        for proxy in proxies:
            proxy.calm()
    link.until_copied()
    link.assert_equal()


@pytest.mark.parametrize("seed", [25])
def test_a_lossy_and_distant_network(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, seed: int
) -> None:
    """100 ms there and back on both sides, and every hundredth segment is lost: copying keeps pace with what such a way
    lets through, and works off what has piled up."""
    link = make_link(source=far_source, destination=far_destination)
    link.make_topics()
    link.publish()
    proxies = (far_source.proxy, far_destination.proxy)
    for proxy in proxies:
        proxy.lose(0.01, round_trip_seconds=0.1)
    link.start_slot()
    with writing(far_source, link.topics, seed=seed, per_second=40):
        eventually(
            lambda: link.copied() > 400 and all(proxy.lost() > 5 for proxy in proxies),
            what=lambda: f"copying goes on, with losses {[proxy.lost() for proxy in proxies]}: {link.log()}",
        )
    with writing(far_source, link.topics, seed=seed + 1, records=1_000):
        pass
    link.until_copied()
    link.assert_equal()


def test_a_slow_line_is_shared(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, topic_name: str
) -> None:
    """A record comes before the 24 MB of others that came first: replies are as large as the line brings in a
    moment."""
    large, small = f"{topic_name}.large", f"{topic_name}.small"
    link = make_link(source=far_source, destination=far_destination, topics={large: 6, small: 1})
    link.make_topics()
    link.publish()
    producer = Producer(far_source.client_properties)
    payload = random.Random(1).randbytes(100_000)
    for number in range(240):
        producer.produce(large, payload, partition=number % 6)
    assert producer.flush(60) == 0
    far_source.proxy.limit(4e5)
    link.start_slot()
    eventually(lambda: sum(ends(far_destination, large, 6)) > 0, what=lambda: f"copying has begun: {link.log()}")
    producer.produce(small, b"at last")
    assert producer.flush(60) == 0
    eventually(lambda: sum(ends(far_destination, small, 1)) == 1, what=lambda: f"the one record: {link.log()}")
    assert sum(ends(far_destination, large, 6)) < 120
    far_source.proxy.calm()
    link.until_copied()
    link.assert_equal()


def test_old_records_that_take_long_to_come_are_sent_once_they_are_there(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, topic_name: str
) -> None:
    """Each takes 15 s, longer than a look at the destination holds: it is looked at again, and the record is kept."""
    link = make_link(source=far_source, destination=far_destination, topics={topic_name: 1})
    link.make_topics()
    link.publish()
    producer = Producer(far_source.client_properties)
    for number in range(4):
        payload = random.Random(number).randbytes(900_000)
        producer.produce(topic_name, payload, partition=0, timestamp=int((time.time() - 2 * 86_400) * 1000))
        assert producer.flush(60) == 0  # a batch of its own
    far_source.proxy.limit(6e4)
    link.start_slot()
    eventually(lambda: link.copied() >= 3, what=lambda: f"one after the other: {link.log()}: {link.waiting()}")
    far_source.proxy.calm()
    link.until_copied()
    link.assert_equal()
