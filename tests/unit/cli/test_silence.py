"""`strait run` beside an application that runs and does not report."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from strait.cli import foreground, kept_application, pool_foreground, silence
from strait.cli.foreground import Foreground
from strait.cli.options import Output
from strait.cli.pool_foreground import PoolForeground
from strait.cli.progress import Progress
from strait.cli.silence import Silence
from strait.config.links import LinksFile, parse
from strait.errors import ClusterUnavailable, LaunchError
from strait.launch.base import Application, State
from strait.planning.status.health import ON_THIS_HOST, SILENT_SECONDS, STARTING_SECONDS
from strait.planning.status.status import SlotStatus, Status
from strait.state.schema import Plan
from support.model.clock import Clock

CLUSTERS = {"bootstrap.servers": "a:1"}
PLAN = Plan(link="one", group="default", version=1, producer_id=1, slots=2, topics=(), published_at_ms=1)


class Launcher:
    """Runs one application, submitted long ago."""

    def __init__(self) -> None:
        self.stopped = 0
        self.fails = False

    def state(self, name: str) -> Application:
        return Application(name, "1", State.RUNNING, "log", 1)

    def stop(self, _: str) -> None:
        if self.fails:
            raise LaunchError("the cluster does not respond")
        self.stopped += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    one = Clock()
    for module in (foreground, kept_application, pool_foreground, silence):
        monkeypatch.setattr(module, "time", one)
    return one


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Launcher:
    one = Launcher()
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path))
    for module in (foreground, pool_foreground):
        monkeypatch.setattr(module, "launcher_for", lambda *_, **__: one)
    return one


def file(pool: str | None = None) -> LinksFile:
    link = {"source": "a", "destination": "b"} | ({"pool": pool} if pool else {})
    pools = {"pools": {pool: {"slots": 1}}} if pool else {}
    raw = {"clusters": {"a": CLUSTERS, "b": CLUSTERS}, "links": dict.fromkeys(("one", "two"), link)}
    return parse(raw | pools, where="test")


def status(*silent: bool, link: str = "one") -> Status:
    slots = tuple(SlotStatus(slot, silent=one, age_ms=0) for slot, one in enumerate(silent))
    return Status(link, "default", 1, False, slots, ())


def test_a_slot_is_silent_once_it_was_for_long_enough_each_time_it_was_looked_at(clock: Clock) -> None:
    one = Silence(ON_THIS_HOST)
    assert not one.is_total
    for _ in range(7):
        one.hear([status(True, False)])
        assert one.silent("default") == ()
        clock.now += 5.0
    one.hear([status(True, True)])
    assert (one.silent("default"), one.is_total) == ((0,), False)
    clock.now += SILENT_SECONDS + 1
    assert one.silent("default") == (), "that was long ago"
    one.hear([status(True, True)])
    assert (one.silent("default"), one.is_total) == ((0, 1), True)
    one.hear([status(False, True)])
    assert one.silent("default") == (1,)
    one.forget()
    assert one.silent("default") == ()


class Statuses:
    """A link's status as the test has it."""

    def __init__(self, *found: Status) -> None:
        self.found: tuple[Status, ...] | None = found

    def statuses(self) -> tuple[Status, ...]:
        if self.found is None:
            raise ClusterUnavailable("b", "timed out")
        return self.found


def test_a_link_s_application_is_restarted_if_a_slot_stays_silent(
    launcher: Launcher, clock: Clock, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    control: Any = Statuses(status(False, True))
    progress = Progress("one", output=Output.TABLE)
    run = Foreground(file(), "one", tmp_path, control, progress, threading.Event())
    run._plans = {"default": PLAN}

    def look(seconds: float) -> None:
        for _ in range(round(seconds / 5)):
            run._keep_running()
            run._show()
            clock.now += 5.0

    look(SILENT_SECONDS)
    control.found = None
    look(5)
    control.found = (status(False, True),)
    look(SILENT_SECONDS)
    assert launcher.stopped == 0, "nothing was known meanwhile"
    launcher.fails = True
    look(10)
    assert "the cluster does not respond" in capsys.readouterr().out
    launcher.fails = False
    run._of("default").starting_at = clock.now
    look(STARTING_SECONDS)
    assert launcher.stopped == 0, "it may still be starting"
    look(10)
    assert launcher.stopped == 1
    assert "starting application strait-one-default again: no report for 30 s" in capsys.readouterr().out


def test_a_pool_s_application_is_restarted_if_no_slot_of_any_link_reports(
    launcher: Launcher, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_foreground, "Control", lambda *_: SimpleNamespace())
    pool = PoolForeground(file("main"), "main", tmp_path, Output.TABLE, threading.Event())
    one, two = pool._members
    one.plans, two.plans = {"default": PLAN}, {"default": PLAN.model_copy(update={"link": "two"})}
    pool._found = launcher.state("strait-pool-main")

    def look(seconds: float, **silent: bool) -> None:
        for _ in range(round(seconds / 5)):
            one.silence.hear([status(True, silent["one"])])
            two.silence.hear([status(True, silent["two"], link="two")])
            pool._restart_hanging()
            clock.now += 5.0

    look(2 * SILENT_SECONDS, one=True, two=False)
    assert launcher.stopped == 0
    look(SILENT_SECONDS + 5, one=True, two=True)
    assert launcher.stopped == 0
    look(5, one=True, two=True)
    assert launcher.stopped == 1
    look(SILENT_SECONDS, one=True, two=True)
    assert launcher.stopped == 1, "it is another one"
