"""Bandwidth budgets on a clock of our own."""

import random

import pytest

from strait.engine.throttle import BURST_SECONDS, CLOCK_SECONDS, SAVED_SECONDS, Throttle
from strait.net.event_loop import Loop
from strait.state.schema import Budget, PlannedBackfill, TopicPolicy
from support.model.fetching import Source, fetcher
from support.model.partitions import placed


def budget(rate: int, topic_class: str = "", shares: tuple[float, ...] = (1.0,)) -> Budget:
    return Budget(topic_class=topic_class, bytes_per_second=rate, slot_shares=shares)


def fetched_in(budgets: Throttle, topic_class: str, seconds: float, chunk: int, seed: int) -> int:
    """Ask whenever it is allowed, with some hesitation, and take a chunk each time."""
    rng = random.Random(seed)
    now, fetched = 0.0, 0
    while now < seconds:
        wait = budgets.wait(topic_class, now)
        if wait:
            now += wait
        else:
            budgets.take(topic_class, chunk)
            fetched += chunk
            now += rng.uniform(0, 0.0005)
    return fetched


@pytest.mark.parametrize("chunk", [1_000, 100_000, 3_000_000])
def test_the_rate_is_held_whatever_comes_at_once(chunk: int) -> None:
    budgets = Throttle()
    budgets.follow([budget(1_000_000)], 0, 0.0)
    fetched = fetched_in(budgets, "", 100.0, chunk, seed=chunk)
    assert fetched == pytest.approx(100_000_000, rel=0.02 + chunk / 100_000_000)


def test_a_slot_keeps_to_its_share_and_a_class_to_both_budgets() -> None:
    budgets = Throttle()
    budgets.follow([budget(1_000_000, shares=(0.75, 0.25)), budget(100_000, "bulk", (0.5, 0.5))], 1, 0.0)
    assert fetched_in(budgets, "", 100.0, 1_000, seed=1) == pytest.approx(25_000_000, rel=0.03)
    budgets.follow([budget(100_000, "bulk", (0.5, 0.5))], 1, 0.0)
    assert fetched_in(budgets, "bulk", 100.0, 1_000, seed=1) == pytest.approx(5_000_000, rel=0.03)
    assert budgets.wait("other", 0.0) == 0.0
    assert budgets.bytes_at_once("other") is None


def test_what_was_not_used_for_long_is_not_saved_up() -> None:
    budgets = Throttle()
    budgets.follow([budget(1_000_000)], 0, 0.0)
    assert budgets.wait("", 1_000.0) == 0.0
    budgets.take("", int(1_000_000 * SAVED_SECONDS) + 500_000)
    assert budgets.wait("", 1_000.0) == pytest.approx(0.5, abs=0.01)


def test_a_change_takes_effect_at_once_and_a_budget_taken_away_is_gone() -> None:
    budgets = Throttle()
    budgets.follow([budget(1_000)], 0, 0.0)
    budgets.take("", 1_000_000)
    assert budgets.wait("", 0.0) > 900
    budgets.follow([budget(1_000)], 0, 0.0)
    assert budgets.wait("", 0.0) > 900, "what is owed stays owed"
    budgets.follow([budget(10_000_000)], 0, 0.0)
    assert budgets.wait("", 0.0) == 0.0
    budgets.take("", 100_000_000)
    budgets.follow([], 0, 0.0)
    assert budgets.wait("", 0.0) == 0.0


def test_a_change_ends_the_pause_of_a_fetcher_and_so_does_a_topic_without_a_budget() -> None:
    loop, source, budgets = Loop(), Source(), Throttle()
    budgets.follow([budget(10_000, "bulk")], 0, loop.now)
    bulk = placed(number=0, policy=TopicPolicy(topic_class="bulk"))
    found = fetcher(source, [bulk], budgets=budgets, loop=loop)

    def pause() -> None:
        found.ask()
        source.answer_without_news()
        budgets.take("bulk", 1 << 20)  # brokers return a batch of this size whole
        asked = len(source.asked)
        found.ask()
        loop.now += 1.0
        found.ask()
        assert len(source.asked) == asked and not found.asks_next

    pause()
    budgets.follow([], 0, loop.now)
    assert found.asks_next
    found.ask()
    assert len(source.open) == 1
    source.answer_without_news()
    budgets.follow([budget(10_000, "bulk")], 0, loop.now)
    pause()
    found.add(placed(number=1))
    found.ask()
    assert len(source.open) == 1
    loop.close()


HOUR_MS = 3_600_000


def test_outside_of_the_hours_nothing_is_fetched_and_at_the_hour_it_begins() -> None:
    clock = [21 * HOUR_MS + HOUR_MS - 500]
    budgets = Throttle(lambda: clock[0])
    night = PlannedBackfill(hours=("22:00-06:00",), timezone="UTC")
    budgets.follow([], 0, 0.0, night)
    assert budgets and budgets.closed(0.0) and 0 < budgets.wait("", 0.0) <= CLOCK_SECONDS
    clock[0] += 1000
    assert budgets.closed(0.5), "the clock is looked at once a second"
    assert budgets.wait("", 1.0) == 0.0 == budgets.wait("bulk", 1.5)
    clock[0] = 30 * HOUR_MS
    assert budgets.closed(2.5)
    budgets.follow([], 0, 2.6)
    assert not budgets and not budgets.closed(2.6) and budgets.wait("", 2.6) == 0.0, "an edit takes effect at once"


def test_the_budget_of_the_task_group_applies_besides_all_others() -> None:
    budgets = Throttle()
    own = PlannedBackfill(budget=budget(40_000, shares=(0.5, 0.5)))
    budgets.follow([budget(1_000_000), budget(100_000, "bulk")], 0, 0.0, own)
    assert budgets.bytes_at_once("bulk") == 20_000 * BURST_SECONDS == budgets.bytes_at_once("")
    assert fetched_in(budgets, "bulk", 100.0, 1_000, seed=1) == pytest.approx(2_000_000, rel=0.03)
    budgets.follow([budget(1_000_000)], 0, 0.0)
    assert budgets.bytes_at_once("") == 1_000_000 * BURST_SECONDS
