"""Three brokers on one side, whose leaders and replicas move while records are copied."""

import random
from collections.abc import Callable

import pytest

from strait.embedded.kafka import Cluster
from strait.reasons import Reason
from support.fixtures.waiting import eventually
from support.kafka.administration import elect_preferred, in_sync, leaders, reassign
from support.links.engine_link import EngineLink
from support.links.load import writing

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]


@pytest.mark.parametrize("end", ["source", "destination"])
@pytest.mark.parametrize("seed", [51])
def test_replicas_and_leaders_moved_all_the_time(
    make_long_link: MakeLink, topic_name: str, three_brokers: Cluster, end: str, seed: int
) -> None:
    """Reassigned to other brokers and leaders elected, with nobody killed, under two racing copies."""
    rng = random.Random(seed)
    link = make_long_link(end, 6)
    racing = [link.start_slot(), link.start_slot()]
    with writing(link.source, link.topics, seed=seed, per_second=3_000):
        for _ in range(5):
            wanted = [rng.sample(three_brokers.broker_ids, 2) for _ in range(6)]
            reassign(three_brokers, topic_name, wanted)
            eventually(
                lambda wanted=wanted: in_sync(three_brokers, topic_name) == [set(brokers) for brokers in wanted],
                what=lambda wanted=wanted: f"replicas move to {wanted}: {in_sync(three_brokers, topic_name)}",
            )
            elect_preferred(three_brokers, topic_name)
            before = link.copied()
            eventually(lambda before=before: link.copied() > before, what=lambda: f"it goes on: {link.log()}")
    link.until_copied()
    link.assert_equal()
    assert [slot.poll() for slot in racing] == [None, None], link.log()


@pytest.mark.parametrize("seed", [52])
def test_the_destinations_leader_dies_with_requests_in_flight(
    make_long_link: MakeLink, topic_name: str, three_brokers: Cluster, seed: int
) -> None:
    """Killed, with acks=all and two replicas required: what was acknowledged is on its successor, the rest is sent
    anew."""
    rng = random.Random(seed)
    link = make_long_link("destination", 3, destination_configs={"min.insync.replicas": "2"})
    racing = [link.start_slot(), link.start_slot()]
    everybody = [set(three_brokers.broker_ids)] * 3
    with writing(link.source, link.topics, seed=seed, per_second=3_000):
        for _ in range(2):
            eventually(lambda: link.copied() > 0, what=lambda: f"copying has begun: {link.log()}")
            victim = leaders(three_brokers, topic_name)[rng.randrange(3)]
            three_brokers.kill(victim)
            before = link.copied()
            eventually(lambda before=before: link.copied() > before + 2_000, what=lambda: f"it goes on: {link.log()}")
            three_brokers.start_broker(victim)
            eventually(lambda: in_sync(three_brokers, topic_name) == everybody, what="the replicas are in sync again")
    link.until_copied()
    link.assert_equal()
    assert [slot.poll() for slot in racing] == [None, None], link.log()


@pytest.mark.parametrize("seed", [53])
def test_too_few_replicas_are_waited_for(
    make_long_link: MakeLink, topic_name: str, three_brokers: Cluster, seed: int
) -> None:
    link = make_long_link("destination", 3, destination_configs={"min.insync.replicas": "2"})
    link.start_slot()
    with writing(link.source, link.topics, seed=seed, per_second=2_000):
        eventually(lambda: link.copied() > 0, what=lambda: f"copying has begun: {link.log()}")
        victims = three_brokers.broker_ids[1:]
        for victim in victims:
            three_brokers.kill(victim)
        link.until_waiting(topic_name, 0, Reason.DESTINATION_NOT_ENOUGH_REPLICAS)
        for victim in victims:
            three_brokers.start_broker(victim)
    link.until_copied()
    link.assert_equal()
