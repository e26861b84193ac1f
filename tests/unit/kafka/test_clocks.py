"""Processes whose wall clock jumps: at once, and only that clock."""

import os
import subprocess
import sys
import time
from pathlib import Path

from support.kafka.clocks import JumpingClock

TELLS = """
import sys, time
for _ in sys.stdin:
    print(time.time(), time.monotonic(), flush=True)
"""


def test_the_wall_clock_jumps_and_no_other_one(tmp_path: Path) -> None:
    clock = JumpingClock(tmp_path)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", TELLS], env=os.environ | clock.environment, text=True, **pipes) as run:
        for seconds in (0, 3600, -86_400 * 400, 7, 0):
            clock.jump(seconds)
            before = time.time(), time.monotonic()
            run.stdin.write("\n")
            run.stdin.flush()
            wall, monotonic = map(float, run.stdout.readline().split())
            after = time.time(), time.monotonic()
            assert before[0] <= wall - seconds <= after[0]
            assert before[1] <= monotonic <= after[1]
        run.stdin.close()
