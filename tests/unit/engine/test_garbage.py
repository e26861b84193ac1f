"""What a slot leaves in cycles does not grow for months, and is not collected while it copies."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from strait.engine.garbage import BUSY_SECONDS, IDLE_SECONDS, Garbage


class Cycle:
    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def old_cycle() -> "weakref.ref[Cycle]":
    """Where only a full collection finds it."""
    cycle = Cycle()
    gc.collect(0)
    gc.collect(1)
    return weakref.ref(cycle)


def test_a_slot_that_is_idle_collects() -> None:
    garbage = Garbage()
    cycle = old_cycle()
    garbage.step(0.0, lambda: True)
    garbage.step(IDLE_SECONDS, lambda: True)
    assert cycle() is not None, "one look is not enough: the next batch may be on its way"
    garbage.step(IDLE_SECONDS + 1.5, lambda: True)
    assert cycle() is None


def test_a_slot_that_copies_does_so_once_an_hour() -> None:
    garbage = Garbage()
    cycle = old_cycle()
    for second in range(int(BUSY_SECONDS)):
        garbage.step(float(second), lambda: False)
    assert cycle() is not None
    garbage.step(BUSY_SECONDS, lambda: False)
    assert cycle() is None


def test_it_looks_once_a_second_at_most() -> None:
    garbage, looks = Garbage(), []
    for tenth in range(int(IDLE_SECONDS * 10) + 50):
        garbage.step(tenth / 10, lambda: bool(looks.append(1)))
    assert len(looks) == 5
