"""The whole suite in two halves side by side, each with clusters of its own: most tests wait for brokers, Spark and
Airflow."""

import shutil
import signal
import subprocess
import sys
import tempfile
from typing import IO

HALVES = (("tests/broker", "tests/compat", "tests/unit"), ("tests/airflow", "tests/e2e", "tests/faults", "tests/spark"))
TITLES = ("= processes that the tests left behind =", "= short test summary info =")


def main() -> int:
    """The first half is shown as it runs, the second once both have ended, and last of all, in a few lines, what
    failed.

    Ctrl-C ends both, and what they have started.
    """
    with tempfile.TemporaryFile("w+") as second_said:
        first, second = (
            _start(folders, output) for folders, output in zip(HALVES, (subprocess.PIPE, second_said), strict=True)
        )
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells the halves, which take their time to end
        signal.signal(signal.SIGTERM, lambda *_: [half.send_signal(signal.SIGINT) for half in (first, second)])
        first_said = _show(first)
        codes = first.wait(), second.wait()
        second_said.seek(0)
        shutil.copyfileobj(second_said, sys.stdout)
        second_said.seek(0)
        for said in (first_said, second_said.readlines()):
            sys.stdout.writelines(summary(said))
    return max(codes, key=abs)


def summary(said: list[str]) -> list[str]:
    """What pytest says at its very end: processes left behind, a line for each test that failed, and the line that
    closes the run."""
    begins = [at for at, line in enumerate(said) if any(title in line for title in TITLES)]
    return said[min(begins, default=-1) :]


def _start(folders: tuple[str, ...], output: int | IO[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pytest", *folders, *sys.argv[1:]], stdout=output, stderr=subprocess.STDOUT, text=True
    )


def _show(half: subprocess.Popen[str]) -> list[str]:
    assert half.stdout is not None  # it was started with a pipe
    lines = []
    for line in half.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        lines.append(line)
    return lines


if __name__ == "__main__":
    sys.exit(main())
