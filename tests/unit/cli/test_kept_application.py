"""How `strait run` keeps one application running: what it does when it ends, and when its cluster does not respond."""

from pathlib import Path
from typing import Any

import pytest

from strait.cli import kept_application
from strait.cli.kept_application import KeptApplication
from strait.cli.options import Output
from strait.cli.progress import Progress
from strait.config.app_spec import PoolSpec
from strait.config.links import Spark
from strait.errors import LaunchError
from strait.launch.base import EXIT_CONFIG, Application, State
from support.model.clock import Clock

SPEC = PoolSpec(pool="main", slots=1, slot_memory_bytes=1, checkpoint_dir="/c")


class Launcher:
    """Runs an application for ``lives`` seconds after each submission."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.submitted: list[float] = []
        self.lives = 0.5
        self.exit_code = 1
        self.away = False
        self.stopped = 0

    def submit(self, name: str, *_: Any) -> Application:
        self._require_cluster()
        self.submitted.append(self.clock.now)
        return Application(name, str(len(self.submitted)), State.SUBMITTED, "log", 0)

    def state(self, name: str) -> Application | None:
        if self.away:
            return Application(name, "", State.UNKNOWN, "", 0)
        if not self.submitted:
            return None
        at, number = self.submitted[-1], str(len(self.submitted))
        alive = self.clock.now < at + self.lives
        state, code = (State.RUNNING, None) if alive else (State.DEAD, self.exit_code)
        return Application(name, number, state, "log", round(at * 1000), code)

    def cause(self, _: Application) -> str:
        self._require_cluster()
        return "it broke"

    def stop(self, _: str) -> None:
        self.stopped += 1

    def _require_cluster(self) -> None:
        if self.away:
            raise LaunchError("the cluster does not respond")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    one = Clock()
    monkeypatch.setattr(kept_application, "time", one)
    return one


@pytest.fixture
def launcher(clock: Clock) -> Launcher:
    return Launcher(clock)


@pytest.fixture
def kept(launcher: Launcher, tmp_path: Path) -> KeptApplication:
    progress = Progress("l", output=Output.TABLE)
    made: Any = launcher
    return KeptApplication("link l", "strait-l-default", tmp_path, made, Spark(), progress)


def look(kept: KeptApplication, clock: Clock, seconds: float) -> None:
    """Look once a second."""
    for _ in range(round(seconds)):
        kept.keep(lambda: SPEC)
        clock.now += 1.0


def test_one_that_ends_before_it_is_seen_alive_is_started_less_and_less_often(
    kept: KeptApplication, launcher: Launcher, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    look(kept, clock, 120)
    pauses = [later - earlier for earlier, later in zip(launcher.submitted, launcher.submitted[1:], strict=False)]
    assert pauses[:4] == [6.0, 16.0, 31.0, 31.0], "each end is seen a second later"
    assert capsys.readouterr().out.count("died: it broke") == len(launcher.submitted)


def test_one_that_ends_at_once_by_its_configuration_ends_the_run(
    kept: KeptApplication, launcher: Launcher, clock: Clock
) -> None:
    look(kept, clock, 3)
    assert len(launcher.submitted) == 1
    launcher.exit_code = EXIT_CONFIG
    with pytest.raises(LaunchError, match="ended: it broke"):
        look(kept, clock, 30)


def test_one_whose_cluster_does_not_respond_is_left_as_it_is(
    kept: KeptApplication, launcher: Launcher, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    launcher.lives = 1000.0
    look(kept, clock, 5)
    launcher.away = True
    look(kept, clock, 5)
    assert kept.keep(lambda: SPEC) == Application("strait-l-default", "", State.UNKNOWN, "", 0)
    assert kept.keep(lambda: SPEC, stopped=True) is not None
    launcher.away = False
    look(kept, clock, 5)
    assert (len(launcher.submitted), launcher.stopped) == (1, 0)
    said = capsys.readouterr().out
    assert "died" not in said
    assert said.count("cannot be seen now") == 1
