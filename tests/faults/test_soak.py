"""All faults at random for a while; ``make soak MINUTES=30`` does it for longer."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.soak.soak import soak

pytestmark = [pytest.mark.broker, pytest.mark.timeout(1200)]


def test_a_few_faults_at_random_leave_the_copy_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soak(tmp_path, 72, saying(capsys), faults=3)


@pytest.mark.parametrize("seed", [71])
def test_three_minutes_of_everything_leave_the_copy_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    soak(tmp_path, seed, saying(capsys), minutes=3.0, faults=6)


def saying(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def say(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}")
            sys.stdout.flush()

    return say
