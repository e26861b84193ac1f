"""Slots of several links in one task: each has its turns, and a failure of one is its own."""

import time
from collections.abc import Callable, Generator, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from strait.config.app_spec import AppSpec
from strait.config.app_spec import Seat as Place
from strait.engine import seat as module
from strait.engine.seat import Seat
from strait.net.event_loop import Loop
from strait.state.report_changes import FailureReport

SPEC = AppSpec(
    link="l", group="default", source_name="a", source={"bootstrap.servers": "a:1"}, destination_name="b",
    destination={"bootstrap.servers": "b:1"}, slots=1, slot_memory_bytes=1 << 20, ledger_seconds=1, ledger_dir="l",
    checkpoint_dir="c",
)  # fmt: skip


REPORTED: list[FailureReport] = []


class State:
    """A link's state, as a feed has read it."""

    def __init__(self) -> None:
        self.plans = {"default": SimpleNamespace(group="default", stopped=False, slots=1, producer_id=1)}
        self.caught_up = True
        self.trouble: Exception | None = None
        self.closed = False
        self.read_again = 0

    def read_from_start(self) -> None:
        self.read_again += 1
        self.caught_up = False

    def close(self) -> None:
        self.closed = True


class Copying:
    """Stands for the slot that copies: what it does in a turn is told by the test."""

    turn: Callable[[], bool] = lambda: True
    running = 0

    def __init__(self, *_: Any) -> None:
        self.idle, self.is_short = True, False

    def turns(self, should_stop: Callable[[], bool]) -> Generator[float]:
        Copying.running += 1
        try:
            while not should_stop():
                yield time.monotonic()
                if not Copying.turn():
                    return
        finally:
            Copying.running -= 1


@pytest.fixture(autouse=True)
def copying(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(module, "Slot", Copying)
    REPORTED.clear()
    monkeypatch.setattr(module, "StateWriter", lambda *_: SimpleNamespace(write_report=REPORTED.append))
    monkeypatch.setattr(module, "RESTART_SECONDS", (0.01, 5.0))
    Copying.turn = lambda: True
    yield
    assert Copying.running == 0, "every slot was closed"


@pytest.fixture
def hub() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


def seat(hub: Loop, state: State) -> Seat:
    feed = SimpleNamespace(follow=lambda *_: state)
    return Seat(Place("l", "default", 0), SPEC, "app", hub, cast(Any, feed), cast(Any, None), lambda _: None, lambda: 1)


def test_a_slot_waits_for_its_plan_copies_and_ends(hub: Loop) -> None:
    state = State()
    state.caught_up = False
    one = seat(hub, state)
    one.turn()
    assert Copying.running == 0
    state.caught_up = True
    one.turn()
    assert Copying.running == 1
    one.end()
    one.turn()
    assert one.ended
    assert state.closed


def test_why_a_slot_waits_for_its_plan_is_told_once(hub: Loop, caplog: pytest.LogCaptureFixture) -> None:
    state = State()
    state.caught_up = False
    state.trouble = ValueError("a record cannot be read")
    one = seat(hub, state)
    for _ in range(3):
        one.turn()
    assert caplog.text.count("slot l/default/0 waits: a record cannot be read") == 1
    one.abandon()


def test_a_stopped_plan_ends_the_copying_and_a_started_one_begins_it(hub: Loop) -> None:
    state = State()
    one = seat(hub, state)
    one.turn()
    state.plans["default"].stopped = True
    Copying.turn = lambda: False
    one.turn()
    assert (Copying.running, one.ended) == (0, False)
    Copying.turn = lambda: True
    state.plans["default"].stopped = False
    one.turn()
    assert Copying.running == 1
    assert state.read_again == 0
    one.abandon()


def test_a_link_that_was_created_again_is_read_from_its_start(hub: Loop) -> None:
    state = State()
    one = seat(hub, state)
    one.turn()
    Copying.turn = lambda: False  # its plan is that of another life
    one.turn()
    assert state.read_again == 1
    assert Copying.running == 0
    one.abandon()


def test_a_failure_is_told_and_the_slot_starts_again_later_each_time(
    hub: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    def fails() -> bool:
        raise ValueError("poisoned")

    one = seat(hub, State())
    one.turn()
    Copying.turn = fails
    one.turn()
    assert (one.failure, one.ended, Copying.running) == ("ValueError: poisoned", False, 0)
    assert "slot l/default/0 failed and is started again in 0.01 s: poisoned" in caplog.text
    one.turn()
    assert Copying.running == 0, "it waits"
    assert [(told.slot, told.application, told.failure) for told in REPORTED] == [(0, "app", "ValueError: poisoned")]
    time.sleep(0.02)
    one.turn()
    assert Copying.running == 1
    one.turn()
    one.turn()
    assert one.due_at > time.monotonic() + 1.0, "it waits longer the second time"
    assert len(REPORTED) == 2
    one.end()
    one.turn()
    assert one.ended


def test_an_event_that_fails_ends_its_own_slot(hub: Loop) -> None:
    one = seat(hub, State())
    one.turn()
    assert one._loop is not None

    def fails() -> None:
        raise ValueError("in a callback")

    one._loop.call_later(0.0, fails)
    one.turn()
    assert (one.failure, Copying.running) == ("ValueError: in a callback", 0)
    one.abandon()
