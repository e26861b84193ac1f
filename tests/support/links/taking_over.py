"""Killing the application that copies, under load, while another one stands by."""

import random
import time

from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink
from support.links.load import writing


def take_over(link: EngineLink, kills: int, seed: int) -> list[float]:
    """Kill that often, compare every record, and return how many seconds it took each time until the next record was
    copied. The standby steps back each time before the next kill."""
    rng, seconds = random.Random(seed), []
    first = link.start_slot()
    standby = link.start_slot(standby=True)
    with writing(link.source, link.topics, seed=seed, per_second=2_000):
        for _ in range(kills):
            copying = {first.pid}
            eventually(
                lambda copying=copying: link.reporters() == copying,
                what=lambda: f"the first one copies alone: {link.log()}",
            )
            time.sleep(rng.uniform(0.0, 1.0))
            link.kill(first)
            begun, before = time.monotonic(), link.copied()
            eventually(lambda before=before: link.copied() > before, what=lambda: f"it is taken over: {link.log()}")
            seconds.append(time.monotonic() - begun)
            first = link.start_slot()
    link.until_copied()
    link.assert_equal()
    assert (first.poll(), standby.poll()) == (None, None), link.log()
    return seconds
