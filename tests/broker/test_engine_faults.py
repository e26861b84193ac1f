"""What may be killed, doubled, moved or forgotten: each time the copy ends equal to its source, record by record."""

import os
import random
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka.protocol.admin import DescribeProducersRequest, DescribeProducersResponse

from strait.config.naming import plan_topic
from strait.embedded.kafka import Cluster
from strait.net.addresses import parse_addresses
from strait.net.handshake import dial
from strait.net.security import Security
from strait.reasons import Reason
from support.fixtures.background import background
from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]


@contextmanager
def loading(link: EngineLink, records: int, seconds: float, seed: int) -> Iterator[threading.Thread]:
    """Write records of seeded sizes to the link's topics, spread over about so many seconds, in the background."""

    def load(stop: threading.Event) -> None:
        rng = random.Random(seed)
        producer = Producer(
            link.source.client_properties
            | {
                "linger.ms": 5,
                "compression.type": "lz4",
                "batch.size": 30_000,
                "queue.buffering.max.messages": 1_000_000,
            }
        )
        payload = rng.randbytes(4096)
        places = [(topic, partition) for topic, count in link.topics.items() for partition in range(count)]
        begun, first_ms = time.monotonic(), int(time.time() * 1000)  # old records would be sent by one copy at a time
        for number in range(records):
            topic, partition = places[number % len(places)]
            start = rng.randrange(3900)
            producer.produce(
                topic,
                payload[start : start + rng.randrange(150)],
                b"%d" % number,
                partition,
                headers=[("n", b"%d" % number)] if number % 10 == 0 else None,
                timestamp=first_ms + number // 10,
            )
            if number % 1000 == 0:
                producer.poll(0)
                if stop.wait(max(0.0, begun + seconds * number / records - time.monotonic())):
                    break
        producer.flush(120)

    with background(load) as thread:
        yield thread


def test_two_racing_copies_and_twenty_kills_leave_the_copy_equal(make_link: MakeLink, topic_name: str) -> None:
    """I1: a million records, two writers at all times, each killed at seeded random moments."""
    rng = random.Random(20)
    link = make_link(topics={topic_name: 4})
    link.make_topics()
    link.publish()
    racing = [link.start_slot(), link.start_slot()]
    with loading(link, 1_000_000, seconds=25, seed=20):
        for _ in range(20):
            time.sleep(rng.uniform(0.3, 2.5))  # the moment of the kill is the random input of this test
            victim = rng.randrange(2)
            link.kill(racing[victim])
            racing[victim] = link.start_slot()
    link.until_copied(1_000_000)
    link.assert_equal()


def test_a_plan_that_changes_all_the_time_moves_partitions_without_a_fault(
    make_link: MakeLink, topic_name: str
) -> None:
    link = make_link(topics={topic_name: 6}, slots=2)
    link.make_topics()
    link.publish()
    link.start_slot(0)
    link.start_slot(1)
    with loading(link, 300_000, seconds=12, seed=6) as loader:
        turn = 0
        while loader.is_alive():
            turn += 1
            link.publish(turn=turn)
    assert turn > 3
    link.until_copied()
    link.assert_equal()


def test_brokers_killed_and_started_again_on_both_sides(make_link: MakeLink, topic_name: str) -> None:
    link = make_link(topics={topic_name: 3})
    link.make_topics()
    link.publish()
    link.start_slot()
    with loading(link, 200_000, seconds=15, seed=1):
        for cluster in (link.destination, link.source, link.destination):
            eventually(lambda: link.copied() > 0, what="copying has begun")
            cluster.kill(1)
            cluster.start_broker(1)
    link.until_copied()
    link.assert_equal()


@pytest.mark.parametrize("end", ["source", "destination"])
def test_leaders_that_die_in_turn(
    make_link: MakeLink, topic_name: str, end: str, three_brokers: Cluster, request: pytest.FixtureRequest
) -> None:
    pair = request.getfixturevalue("clusters")
    ends = {"source": pair.source, "destination": pair.destination} | {end: three_brokers}
    link = make_link(topics={topic_name: 6}, slots=1, **ends)
    link.make_topics()
    link.publish()
    link.start_slot()
    with loading(link, 150_000, seconds=20, seed=3):
        for broker in three_brokers.broker_ids:
            three_brokers.kill(broker)
            three_brokers.start_broker(broker)
    link.until_copied()
    link.assert_equal()


@pytest.mark.core
def test_a_producer_that_the_broker_has_forgotten_goes_on_exactly(
    make_link: MakeLink, topic_name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """I2: after a day without a write the broker does not know our last sequence any more; the log's tail does."""
    forgetful = {"producer.id.expiration.ms": "1000", "producer.id.expiration.check.interval.ms": "200"}
    with Cluster(tmp_path / "forgetful", properties=forgetful) as destination:
        source = request.getfixturevalue("clusters").source
        link = make_link(topics={topic_name: 2}, source=source, destination=destination)
        link.make_topics()
        plan = link.publish()
        for records in (1000, 2000):
            slot = link.start_slot()
            with loading(link, 1000, seconds=0.1, seed=records):
                pass
            link.until_copied(records)
            link.kill(slot)  # without a last checkpoint: the map knows nothing of these records
            eventually(lambda: not known_producers(destination, topic_name), what="the broker forgets the producer")
        assert plan.producer_id >= 0
        link.start_slot()
        with loading(link, 1000, seconds=0.1, seed=9):
            pass
        link.until_copied(3000)
        link.assert_equal()


def test_a_first_batch_refused_is_never_overtaken_by_its_successors(make_link: MakeLink, topic_name: str) -> None:
    """A broker takes any sequence from a producer it does not know: what follows a refused batch must not be sent."""
    link = make_link(topics={topic_name: 1})
    link.make_topics(destination_configs={"max.message.bytes": "10000"})
    producer = Producer(link.source.client_properties | {"linger.ms": 0, "batch.num.messages": 1})
    producer.produce(topic_name, random.Random(5).randbytes(50_000))
    for number in range(50):
        producer.produce(topic_name, b"%d" % number)
        producer.flush(30)
    link.publish()
    link.start_slot()
    link.until_waiting(topic_name, 0, Reason.BATCH_TOO_LARGE)
    assert link.copied() == 0


@pytest.mark.core
def test_memory_stays_within_its_budget_behind_a_destination_that_stands_still(
    make_link: MakeLink, topic_name: str
) -> None:
    """Whatever waits at the source, a slot holds its budget of it; the rest of its process is below 100 MB, libraries
    that all slots of a machine share not counted, as `make bench` does not."""
    budget_bytes = 32 << 20
    link = make_link(topics={topic_name: 6}, slot_memory_bytes=budget_bytes)
    link.make_topics()
    link.publish()
    slot = link.start_slot()
    with loading(link, 600, seconds=0.1, seed=1):
        pass
    link.until_copied()
    broker = link.destination.pid(1)
    assert broker is not None
    os.kill(broker, signal.SIGSTOP)
    try:
        fill(link, topic_name, megabytes=200)
        eventually(lambda: stands_still(slot.pid), what="the slot stops fetching")
    finally:
        os.kill(broker, signal.SIGCONT)
    link.until_copied()
    memory = dict(re.findall(r"(\w+):\s+(\d+) kB", Path(f"/proc/{slot.pid}/status").read_text()))
    peak_bytes = (int(memory["VmHWM"]) - int(memory["RssFile"])) * 1024
    assert peak_bytes < budget_bytes + 100_000_000
    link.assert_equal()


def fill(link: EngineLink, topic: str, megabytes: int) -> None:
    """Records of 100 kB that do not compress."""
    payload = random.Random(7).randbytes(1 << 20)
    producer = Producer(link.source.client_properties | {"linger.ms": 5})
    for number in range(megabytes * 10):
        start = number * 37 % (len(payload) - 100_000)
        producer.produce(topic, payload[start : start + 100_000], partition=number % link.topics[topic])
        producer.poll(0.001)
    assert producer.flush(60) == 0


def stands_still(pid: int) -> bool:
    """Whether a process fetches nothing more: what it reads in a second is not even one record of ours."""
    before = read_bytes(pid)
    time.sleep(1.0)  # the time over which it is watched
    return read_bytes(pid) - before < 100_000


def read_bytes(pid: int) -> int:
    """All that a process has read, sockets included."""
    return int(re.search(r"rchar: (\d+)", Path(f"/proc/{pid}/io").read_text())[1])


def known_producers(cluster: Cluster, topic: str) -> list[int]:
    """The producer ids that the leader of partition 0 knows."""
    properties = cluster.client_properties
    address = parse_addresses("it", properties["bootstrap.servers"])[0]
    connection = dial("it", address, Security("it", properties))
    try:
        request = DescribeProducersRequest(
            version=0, topics=[DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[0])]
        )
        reply = connection.ask(request, DescribeProducersResponse)
    finally:
        connection.close()
    return [producer.producer_id for producer in reply.topics[0].partitions[0].active_producers]


@pytest.mark.core
def test_garbage_in_the_plan_topic_leaves_the_last_good_plan_in_force(make_link: MakeLink, topic_name: str) -> None:
    """Also for a slot that starts after the garbage was written."""
    link = make_link(topics={topic_name: 1})
    link.make_topics()
    link.publish()
    vandal = Producer(link.destination.client_properties)
    vandal.produce(plan_topic(link.name), b"not a plan", b"not a key")
    assert vandal.flush(30) == 0
    link.start_slot()
    with loading(link, 100, seconds=0.1, seed=1):
        pass
    link.until_copied()
    link.assert_equal()


def test_a_destination_that_takes_small_requests_only_gets_small_ones(
    make_link: MakeLink, topic_name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """A broker closes the connection on which a request above its bound comes; all else is Kafka's default."""
    with Cluster(tmp_path / "narrow", properties={"socket.request.max.bytes": "2000000"}) as destination:
        source = request.getfixturevalue("clusters").source
        link = make_link(topics={topic_name: 8, f"{topic_name}-small": 1}, source=source, destination=destination)
        link.make_topics()
        producer = Producer(source.client_properties)
        for number in range(32):
            producer.produce(topic_name, random.Random(number).randbytes(900_000), partition=number % 8)
            producer.produce(f"{topic_name}-small", b"%d" % number, partition=0)
            producer.poll(0.1)
        assert producer.flush(60) == 0
        link.publish()
        link.start_slot()
        link.until_copied(within_seconds=90)
        link.assert_equal()
