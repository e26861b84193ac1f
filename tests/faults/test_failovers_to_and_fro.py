"""Failovers while something is broken; ``make soak ARGS="--failovers 20"``, and ``--unplanned``, do it for longer."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.soak.failovers import rounds
from support.soak.unplanned import unplanned_rounds

pytestmark = [pytest.mark.broker, pytest.mark.timeout(1200)]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    def say(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}")
            sys.stdout.flush()

    return say


@pytest.mark.parametrize("seed", [4])
def test_each_consumer_processes_each_record_once(tmp_path: Path, say: Callable[[str], None], seed: int) -> None:
    assert rounds(tmp_path, 2, seed, say) > 200


@pytest.mark.parametrize("seed", [9])
def test_where_the_source_is_lost_a_report_names_no_fewer_records_than_are_missing(
    tmp_path: Path, say: Callable[[str], None], seed: int
) -> None:
    assert unplanned_rounds(tmp_path, 2, seed, say) > 0
