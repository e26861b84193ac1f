"""The directories of several `strait run` in one STRAIT_HOME, also of other hosts and containers."""

import fcntl
import os
import time
from pathlib import Path

import psutil
import pytest

from strait.cli.foreground import folder_of

DAY_SECONDS = 86400.0
NOBODY = 4_999_999  # above every pid


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("STRAIT_HOME", str(tmp_path))
    assert not psutil.pid_exists(NOBODY)
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def made(folder: Path, *, locked: bool, age_seconds: float = 0.0) -> Path:
    folder.mkdir()
    if locked:
        (folder / "lock").touch()
    at = time.time() - age_seconds
    os.utime(folder, (at, at))
    return folder


def test_the_directory_of_an_instance_elsewhere_stays(runs: Path) -> None:
    """Its pid says nothing here: it is on another host, or in another container."""
    elsewhere = made(runs / f"a-{NOBODY}", locked=True)
    with (elsewhere / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with folder_of("a"):
            assert elsewhere.is_dir()
    with folder_of("a"):
        assert not elsewhere.exists(), "it has ended"


def test_one_of_the_same_pid_elsewhere_has_another_directory(runs: Path) -> None:
    elsewhere = made(runs / f"a-{os.getpid()}", locked=True)
    with (elsewhere / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with folder_of("a") as folder:
            assert folder != elsewhere and str(os.getpid()) in folder.name
        assert elsewhere.is_dir() and not folder.exists()


def test_each_directory_is_held_while_it_is_used(runs: Path) -> None:
    with folder_of("a") as one, folder_of("a") as two, folder_of("b") as three:
        assert len({one, two, three}) == 3
        assert all(folder.is_dir() for folder in (one, two, three))
        assert one.name == f"a-{os.getpid()}"
        assert one.stat().st_mode & 0o777 == 0o700
    assert not list(runs.iterdir())


def test_of_an_earlier_version_only_old_ones_of_processes_that_are_gone_are_removed(runs: Path) -> None:
    old = made(runs / f"a-{NOBODY}", locked=False, age_seconds=DAY_SECONDS + 60)
    young = made(runs / f"b-{NOBODY}", locked=False, age_seconds=DAY_SECONDS - 60)
    alive = made(runs / f"c-{os.getppid()}", locked=False, age_seconds=2 * DAY_SECONDS)
    other = made(runs / "not-a-pid", locked=False, age_seconds=2 * DAY_SECONDS)
    with folder_of("a"):
        assert not old.exists()
        assert young.is_dir() and alive.is_dir() and other.is_dir()
