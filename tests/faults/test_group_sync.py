"""Consumer groups stay in sync through lost requests and moving coordinators, and no offset is ever taken back."""

import random
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.errors import ClusterUnavailable
from strait.model import TopicPartition
from strait.net.consumer_groups import ConsumerGroups
from strait.state.schema import PlannedGroupSync
from support.fixtures.background import beside
from support.fixtures.waiting import eventually
from support.kafka.groups import commit
from support.links.engine_link import EngineLink
from support.links.far import FarCluster
from support.links.group_sync import application

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]
GROUPS = 20
EVERY_SECOND = PlannedGroupSync(include=(".*",), interval_seconds=1)
RECORDS = 600


def copied(link: EngineLink, topic: str) -> EngineLink:
    link.make_topics()
    producer = Producer(link.source.client_properties)
    for number in range(RECORDS):
        producer.produce(topic, b"%d" % number, partition=number % 3)
    assert producer.flush(30) == 0
    link.publish(consumer_groups=EVERY_SECOND)
    link.start_slot()
    link.until_copied()
    link.until_seen()
    return link


class Committed:
    """What each group has on the destination, looked at again and again: it must only grow."""

    def __init__(self, cluster: Cluster, names: list[str]) -> None:
        self._cluster = cluster
        self._names = names
        self.seen: dict[tuple[str, TopicPartition], int] = {}
        self.looks = 0

    def look(self) -> None:
        try:
            with ConsumerGroups(self._cluster.client_properties, "b") as groups:
                told = groups.committed(self._names)
        except ClusterUnavailable:
            return
        self.looks += 1
        for name, offsets in told.items():
            for place, item in ({} if isinstance(offsets, int) else offsets).items():
                assert item.offset >= self.seen.get((name, place), 0), f"{name} in {place} was taken back"
                self.seen[name, place] = item.offset

    @contextmanager
    def watched(self) -> Iterator[None]:
        wrong: list[AssertionError] = []

        def work(stopped: threading.Event) -> None:
            while not stopped.wait(0.2):
                try:
                    self.look()
                except AssertionError as error:
                    wrong.append(error)
                    return

        with beside(work):
            yield
        assert not wrong, wrong[0]


def move_on(
    link: EngineLink,
    names: list[str],
    topic: str,
    rng: random.Random,
    rounds: int,
    before: Mapping[str, list[int]] | None = None,
) -> dict[str, list[int]]:
    """Groups commit on the source, further each time; returns where they end. ``before``: where they ended before, since
    one that goes back on the source goes back on the destination."""
    at = {name: [0, 0, 0] for name in names} | dict(before or {})
    for _ in range(rounds):
        for name in rng.sample(names, len(names) // 2):
            at[name] = [min(RECORDS // 3, offset + rng.randrange(1, 20)) for offset in at[name]]
            commit(link.source, name, {TopicPartition(topic, number): offset for number, offset in enumerate(at[name])})
    return {name: offsets for name, offsets in at.items() if any(offsets)}


def until_in_sync(committed: Committed, wanted: dict[str, list[int]], topic: str) -> None:
    def same() -> bool:
        committed.look()
        return all(
            committed.seen.get((name, TopicPartition(topic, number))) == offset
            for name, offsets in wanted.items()
            for number, offset in enumerate(offsets)
        )

    eventually(same, what=lambda: f"{wanted} on the destination, which has {committed.seen}")


@pytest.mark.parametrize("seed", [23])
def test_one_request_in_a_hundred_is_lost_on_either_side(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, topic_name: str, seed: int
) -> None:
    """Cut off before it arrives, or when it was done and only the answer is lost."""
    rng = random.Random(seed)
    link = copied(make_link(source=far_source, destination=far_destination), topic_name)
    names = [f"{topic_name}-{number}" for number in range(GROUPS)]
    committed = Committed(far_destination, names)
    cuts = [
        cluster.proxy.cut(way, times=None, chance=0.01, client="")
        for cluster in (far_source, far_destination)
        for way in ("request", "reply")
    ]
    with application(link), committed.watched():
        wanted = move_on(link, names, topic_name, rng, 12)
        eventually(lambda: sum(cut() for cut in cuts) >= 10, what="requests are lost")
        until_in_sync(committed, wanted, topic_name)
    assert committed.looks > 5


@pytest.mark.parametrize("seed", [29])
def test_coordinators_move_from_broker_to_broker(
    make_link: MakeLink, clusters: object, three_brokers: Cluster, topic_name: str, tmp_path: Path, seed: int
) -> None:
    """Each broker of the destination in turn is killed and comes back, while groups commit on the source."""
    rng = random.Random(seed)
    link = copied(make_link(source=clusters.source, destination=three_brokers), topic_name)  # type: ignore[attr-defined]
    names = [f"{topic_name}-{number}" for number in range(GROUPS)]
    committed = Committed(three_brokers, names)
    with application(link), committed.watched():
        ended: dict[str, list[int]] = {}
        for broker in three_brokers.broker_ids:
            three_brokers.kill(broker)
            ended |= move_on(link, names, topic_name, rng, 2, ended)
            three_brokers.start_broker(broker)
        wanted = {name: [RECORDS // 3] * 3 for name in names}
        for name in names:
            commit(link.source, name, {TopicPartition(topic_name, number): RECORDS // 3 for number in range(3)})
        until_in_sync(committed, wanted, topic_name)
    assert committed.looks > 5
