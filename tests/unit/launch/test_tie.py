"""Whether an application notices that the process is gone that it is tied to."""

import subprocess
from collections.abc import Iterator

import pytest

from strait.launch.parent_watch import tie_broken, tied_environment
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
