"""A second application that stands by: it takes over when the first one is killed, and steps back when it returns."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from strait.engine.slot import run_slot
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.links.engine_link import EngineLink
from support.links.load import writing
from support.links.taking_over import take_over

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

MakeLink = Callable[..., EngineLink]


@pytest.mark.parametrize(("seed", "kills"), [pytest.param(31, 3, marks=pytest.mark.core), (32, 6)])
def test_a_standby_takes_over_again_and_again_and_steps_back(
    make_link: MakeLink, clusters: Any, seed: int, kills: int
) -> None:
    """Each time the one that copies is killed under load; the other one goes on, and the next one takes the work
    back. `benchmarks/standby.py` does it more often, and measures it."""
    link = make_link(source=clusters.source, destination=clusters.destination, topics={f"standby-{seed}": 4})
    link.make_topics()
    link.publish()
    assert len(take_over(link, kills=kills, seed=seed)) == kills


def test_a_standby_copies_nothing_while_another_one_does(make_link: MakeLink, clusters: Any, topic_name: str) -> None:
    link = make_link(source=clusters.source, destination=clusters.destination, topics={topic_name: 2})
    link.make_topics()
    link.publish()
    link.start_slot(standby=True)
    first = link.start_slot()
    with writing(clusters.source, link.topics, seed=1, records=1_000):
        pass
    link.until_copied()
    eventually(lambda: link.reporters() == {first.pid}, what=lambda: f"the standby steps back: {link.log()}")
    link.publish(turn=0, stopped=True)
    eventually(lambda: first.poll() is not None, what=lambda: f"it ends: {link.log()}")
    before = ends(clusters.destination, topic_name, 2)
    with writing(clusters.source, link.topics, seed=2, records=100):
        pass
    time.sleep(5.0)
    assert ends(clusters.destination, topic_name, 2) == before, "a stopped link has nobody to take over from"
    link.publish()
    link.until_copied()  # nobody else is there
    link.assert_equal()


def test_who_has_stepped_back_stands_by_again_in_the_same_process(
    make_link: MakeLink, clusters: Any, topic_name: str
) -> None:
    """Spark runs slots anew only when all of them have ended."""
    link = make_link(source=clusters.source, destination=clusters.destination, topics={topic_name: 2})
    link.make_topics()
    link.publish()
    first, stop = link.start_slot(), threading.Event()
    eventually(lambda: link.reporters() == {first.pid}, what=lambda: f"the first one copies: {link.log()}")
    spec = link.spec.model_copy(update={"standby": True})
    standby = threading.Thread(target=run_slot, args=(spec, 0, "standby", stop.is_set))
    standby.start()
    try:
        for seed in (1, 2):
            link.kill(first)
            with writing(clusters.source, link.topics, seed=seed, records=100):
                pass
            link.until_copied()
            first = link.start_slot()
            alone = {first.pid}
            eventually(
                lambda alone=alone: link.reporters() == alone, what=lambda: f"the standby steps back: {link.log()}"
            )
            assert standby.is_alive(), link.log()
    finally:
        stop.set()
        standby.join(60)
    link.assert_equal()
    told = [entry for part in link.told_for_the_ledger() if part.application == "standby" for entry in part.entries]
    assert sum(entry.records for entry in told) == 200
