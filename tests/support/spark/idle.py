"""A `spark-submit` that stands in for Spark's."""

import sys
from pathlib import Path

_WAITS = "import signal\nsignal.signal(signal.SIGTERM, lambda *_: exit(0))\nsignal.pause()\n"


def idle_spark_submit(path: Path) -> Path:
    """Make one that runs, does nothing, and ends when it is asked to, although it is started with SIGTERM ignored."""
    path.parent.mkdir(parents=True)
    path.write_text(f"#!{sys.executable}\n{_WAITS}")
    path.chmod(0o700)
    return path
