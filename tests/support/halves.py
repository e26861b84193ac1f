"""The whole suite in two halves side by side, each with clusters of its own: most tests wait for brokers, Spark and Airflow."""

import shutil
import signal
import subprocess
import sys
import tempfile

HALVES = (("tests/broker", "tests/unit"), ("tests/airflow", "tests/e2e", "tests/faults", "tests/spark"))


def main() -> int:
    """The first half is shown as it runs, the second once both have ended. Ctrl-C ends both, and what they have started."""
    with tempfile.TemporaryFile("w+") as said:
        halves = [
            subprocess.Popen(
                [sys.executable, "-m", "pytest", *folders, *sys.argv[1:]], stdout=output, stderr=subprocess.STDOUT
            )
            for folders, output in zip(HALVES, (None, said), strict=True)
        ]
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells the halves, which take their time to end
        signal.signal(signal.SIGTERM, lambda *_: [half.send_signal(signal.SIGINT) for half in halves])
        codes = [half.wait() for half in halves]
        said.seek(0)
        shutil.copyfileobj(said, sys.stdout)
    return max(codes, key=abs)


if __name__ == "__main__":
    sys.exit(main())
