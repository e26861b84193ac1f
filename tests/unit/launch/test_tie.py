"""Whether an application notices that the process is gone that it is tied to."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from strait.config.app_spec import AppSpec
from strait.launch.parent_watch import parent_exited, tie_broken, tied_environment
from strait.spark import head_start
from support.fixtures.waiting import eventually


@pytest.fixture
def holder(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process that this one takes itself to be tied to."""
    process = subprocess.Popen(["sleep", "600"])
    for key, value in tied_environment(process.pid).items():
        monkeypatch.setenv(key, value)
    yield process
    process.kill()
    process.wait(10)


def test_an_untied_application_never_ends_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tied_environment(None) == {}
    assert not tie_broken()()


def test_the_tie_holds_as_long_as_the_process_lives_and_no_zombie_longer(holder: subprocess.Popen[bytes]) -> None:
    broken = tie_broken()
    assert not broken()
    holder.kill()
    eventually(broken, what="the zombie is noticed", within_seconds=60)
    holder.wait(10)
    assert broken()


def test_a_process_that_was_gone_before_is_noticed_too(holder: subprocess.Popen[bytes]) -> None:
    holder.kill()
    holder.wait(10)
    assert tie_broken()()


def test_a_parent_that_was_gone_before_is_noticed_though_another_process_is_the_parent_now(
    holder: subprocess.Popen[bytes],
) -> None:
    assert not parent_exited(os.getppid())()
    assert parent_exited(holder.pid)(), "it runs, but is not the parent"
    holder.kill()
    holder.wait(10)
    assert parent_exited(holder.pid)()


def test_a_head_start_whose_spark_submit_failed_before_copies_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell beside it has ended by then, so its parent is another process."""
    spec = AppSpec(
        link="l", group="default", source_name="a", source={"bootstrap.servers": "127.0.0.1:1"}, destination_name="b",
        destination={"bootstrap.servers": "127.0.0.1:1"}, slots=1, slot_memory_bytes=1 << 20, ledger_seconds=60,
        ledger_dir=str(tmp_path), checkpoint_dir=str(tmp_path),
    )  # fmt: skip
    ran: list[str] = []
    monkeypatch.setattr(head_start.signal, "signal", lambda *_: None)
    monkeypatch.setattr("strait.engine.task.run", lambda *_: ran.append("slot"))
    (tmp_path / "1000/head-start").mkdir(parents=True)
    spec.write(tmp_path / "1000/spec.json")
    ended = subprocess.run(["/bin/sh", "-c", "echo $$"], capture_output=True, text=True, check=True)
    head_start.run(tmp_path / "1000/spec.json", int(ended.stdout))
    assert ran == []
