"""All faults at random for three minutes; ``make soak MINUTES=30`` does it for longer."""

import sys
from pathlib import Path

import pytest

from support.soak.soak import soak

pytestmark = [pytest.mark.broker, pytest.mark.timeout(1200)]


BESIDE_OTHERS_SECONDS = 15.0
"""The rest of the suite runs beside it, on the same processors. `make soak` has the machine to itself."""


@pytest.mark.parametrize("seed", [71])
def test_three_minutes_of_everything_leave_the_copy_equal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    def say(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}")
            sys.stdout.flush()

    recoveries = soak(tmp_path, minutes=3.0, seed=seed, say=say, goal_seconds=BESIDE_OTHERS_SECONDS)
    assert sum(map(len, recoveries.values())) > 5
