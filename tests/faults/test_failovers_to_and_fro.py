"""A failover and a failback while something is broken; ``make soak ARGS="--failovers 20"`` does it for longer."""

import sys
from pathlib import Path

import pytest

from support.soak.failovers import rounds

pytestmark = [pytest.mark.broker, pytest.mark.timeout(1200)]


@pytest.mark.parametrize("seed", [4])
def test_each_consumer_processes_each_record_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    def say(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}")
            sys.stdout.flush()

    assert rounds(tmp_path, 2, seed, say) > 200
