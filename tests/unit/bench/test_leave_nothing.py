"""A benchmark leaves no process, however it ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from support import reaper
from support.fixtures.running import look_at
from support.fixtures.waiting import eventually

BENCHMARK = """
import subprocess, sys, time
from pathlib import Path
from support.reaper import leave_nothing
leave_nothing()
try:
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    Path(sys.argv[1], "pid.new").write_text(str(child.pid))
    Path(sys.argv[1], "pid.new").rename(Path(sys.argv[1], "pid"))
    time.sleep(300)
finally:
    Path(sys.argv[1], "cleaned").touch()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_benchmark_that_is_ended_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(reaper.__file__).parents[1])}
    with subprocess.Popen([sys.executable, "-c", BENCHMARK, tmp_path], env=environment) as run:
        eventually((tmp_path / "pid").exists, what="the benchmark has started")
        left = psutil.Process(int((tmp_path / "pid").read_text()))
        run.send_signal(number)
    eventually(lambda: not list(look_at([left])), what="its process has been ended")
    assert (tmp_path / "cleaned").exists() == (number == signal.SIGTERM)


def test_a_mark_is_not_the_beginning_of_another_ones() -> None:
    environment = {reaper.MARK: "a1.b"}
    with subprocess.Popen(["sleep", "300"], env=environment) as process:
        try:
            assert (
                [one.pid for one in reaper.marked("a1")] == [process.pid] == [one.pid for one in reaper.marked("a1.b")]
            )
            assert not list(reaper.marked("a"))
        finally:
            process.kill()
