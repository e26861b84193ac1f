"""The plan changed all the time: partitions moved between racing slots, topics taken out and put in again."""

import random
from collections.abc import Callable

import pytest

from support.links.engine_link import EngineLink
from support.links.far import FarCluster
from support.links.load import writing
from support.proxy.proxy import PRODUCE

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("seed", [41])
def test_topics_come_and_go_and_partitions_move_under_cuts(
    make_link: Callable[..., EngineLink],
    topic_name: str,
    far_source: FarCluster,
    far_destination: FarCluster,
    seed: int,
) -> None:
    """Two copies of each of two slots, so every partition has two writers, and its zombies."""
    rng = random.Random(seed)
    topics = {f"{topic_name}.{number}": 1 + number for number in range(4)}
    link = make_link(source=far_source, destination=far_destination, topics=topics, slots=2)
    link.make_topics()
    link.publish()
    racing = [link.start_slot(slot) for slot in (0, 1, 0, 1)]
    with writing(far_source, link.topics, seed=seed, per_second=8_000, records=100_000) as writer:
        turn = 0
        while writer.writing:
            turn += 1
            link.publish(sorted(rng.sample(sorted(topics), rng.randrange(1, 5))), turn=turn)
            far_destination.proxy.cut(rng.choice(["request", "reply"]), PRODUCE, skip=rng.randrange(20))
            far_destination.proxy.hold(PRODUCE, seconds=rng.uniform(0.0, 1.0), skip=rng.randrange(20))
    assert turn > 3
    link.publish()
    link.until_copied()
    link.assert_equal()
    assert [slot.poll() for slot in racing] == [None] * 4, link.log()
