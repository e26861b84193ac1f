"""Slots that stand still, and slots whose clocks are wrong."""

import random
import signal
import time
from collections.abc import Callable

import pytest

from strait.net.event_loop import STALL_SECONDS
from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink
from support.links.far import FarCluster
from support.links.load import writing
from support.proxy.proxy import PRODUCE

pytestmark = pytest.mark.broker

MakeLink = Callable[..., EngineLink]


@pytest.mark.parametrize("seed", [31])
def test_a_slot_suspended_for_long_wakes_up_harmless(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, seed: int
) -> None:
    """Stopped amid copying, with batches in hand, longer than STALL_SECONDS, while another copy goes on."""
    link = make_link(source=far_source, destination=far_destination)
    link.make_topics()
    link.publish()
    suspended, _ = link.start_slot(), link.start_slot()
    with writing(far_source, link.topics, seed=seed, per_second=3_000):
        eventually(lambda: link.copied() > 5_000, what=lambda: f"copying has begun: {link.log()}")
        suspended.send_signal(signal.SIGSTOP)
        stopped_at = time.monotonic()
        eventually(lambda: time.monotonic() > stopped_at + STALL_SECONDS + 2.0, what="it was suspended for long")
        suspended.send_signal(signal.SIGCONT)
        before = link.copied()
        eventually(lambda: link.copied() > before + 5_000, what=lambda: f"copying goes on: {link.log()}")
    link.until_copied()
    link.assert_equal()
    assert suspended.poll() is None, link.log()


@pytest.mark.parametrize("seed", [32])
def test_slots_suspended_again_and_again_for_a_moment(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, seed: int
) -> None:
    """Too short to be noticed by the slot, long enough for the other copy to overtake it."""
    rng = random.Random(seed)
    link = make_link(source=far_source, destination=far_destination)
    link.make_topics()
    link.publish()
    racing = [link.start_slot(), link.start_slot()]
    with writing(far_source, link.topics, seed=seed, per_second=4_000) as writer:
        eventually(lambda: link.copied() > 0, what=lambda: f"copying has begun: {link.log()}")
        for _ in range(15):
            victim = rng.choice(racing)
            victim.send_signal(signal.SIGSTOP)
            target = writer.written + rng.randrange(2_000, 8_000)
            eventually(lambda target=target: writer.written > target, what="the source goes on")
            victim.send_signal(signal.SIGCONT)
            far_destination.proxy.hold(PRODUCE, seconds=rng.uniform(0.0, 1.0))
    link.until_copied()
    link.assert_equal()


@pytest.mark.parametrize("seed", [33])
def test_slots_whose_clocks_jump_by_days(
    make_link: MakeLink, far_source: FarCluster, far_destination: FarCluster, seed: int
) -> None:
    """Following the plan does not depend on wall-clock time; of copying only whether copies stand by for one another
    does."""
    first, second = "clocks.first", "clocks.second"
    link = make_link(source=far_source, destination=far_destination, topics={first: 2, second: 2})
    link.make_topics()
    link.publish([first])
    racing = [link.start_slot(clock_jumps_seconds=jump) for jump in (86_400.0, -86_400.0)]
    with writing(far_source, link.topics, seed=seed, records=30_000):
        eventually(lambda: link.copied() > 0, what=lambda: f"copying has begun: {link.log()}")
        link.publish()
        for victim in (0, 1):  # its successor meets checkpoints and reports from another day
            link.kill(racing[victim])
            racing[victim] = link.start_slot(clock_jumps_seconds=-43_200.0)
    link.until_copied()
    link.assert_equal()
    assert [slot.poll() for slot in racing] == [None, None], link.log()
