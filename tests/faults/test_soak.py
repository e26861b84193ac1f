"""All faults at random for a while; ``make soak MINUTES=30`` does it for longer."""

import sys
from pathlib import Path

import pytest

from support.soak.soak import soak

pytestmark = [pytest.mark.broker, pytest.mark.timeout(1200)]


def test_half_a_minute_of_everything_leaves_the_copy_equal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert soaked(tmp_path, capsys, minutes=0.5, seed=72) > 0


@pytest.mark.parametrize("seed", [71])
def test_three_minutes_of_everything_leave_the_copy_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    assert soaked(tmp_path, capsys, minutes=3.0, seed=seed) > 5


def soaked(folder: Path, capsys: pytest.CaptureFixture[str], *, minutes: float, seed: int) -> int:
    """The number of faults after which copying went on."""

    def say(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}")
            sys.stdout.flush()

    recoveries = soak(folder, minutes=minutes, seed=seed, say=say)
    return sum(map(len, recoveries.values()))
