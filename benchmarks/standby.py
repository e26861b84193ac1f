"""How soon does a standby go on, and what does it cost meanwhile?

The one that copies is killed with SIGKILL, again and again, while 2,000 records a second are written; every record is
compared afterwards. Then a standby is left alone for a while, beside one that copies nothing.

    python benchmarks/standby.py [--kills 20]

Appends a row to results-standby.md.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measuring import add_row
from strait.config.links import Spark
from strait.embedded.kafka import Cluster
from strait.launch import processes
from strait.launch.base import State
from strait.launch.local import LocalLauncher
from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink
from support.links.taking_over import take_over
from support.reaper import leave_nothing

RESULTS = Path(__file__).parent / "results-standby.md"
INTRODUCTION = (
    "# Standby\n\nMade by `standby.py`: seconds from killing the slot that copies until the next record is on the "
    "destination, by the standby; and what a whole Spark application costs while it stands by, in percent of a core. "
    "Bounds: 3 s, 3 %."
)
HEAD = ("kills", "median", "longest", "CPU standing by")
IDLE_SECONDS = 60.0


def cpu_seconds(below: Path) -> dict[int, float]:
    """Of each process of the applications there."""
    found = [one for some in processes.find(below).values() for one in some]
    return {one.pid: sum(one.cpu_times()[:2]) for one in found}


def standing_by(link: EngineLink) -> float:
    """Share of a core that a Spark application takes, while a slot beside it reports."""
    launcher = LocalLauncher(link.folder / "applications")
    spec = link.folder / "standby.json"
    link.spec.model_copy(update={"standby": True, "ledger_seconds": 300}).write(spec)
    launcher.submit("standby", spec, Spark())
    try:
        eventually(lambda: launcher.state("standby").state is State.RUNNING, what="it runs", within_seconds=180.0)
        time.sleep(20.0)  # what Spark does at its start is over
        before = cpu_seconds(launcher.directory)
        time.sleep(IDLE_SECONDS)
        spent = sum(after - before.get(pid, 0.0) for pid, after in cpu_seconds(launcher.directory).items())
        return spent / IDLE_SECONDS
    finally:
        launcher.stop("standby", grace_seconds=0.0)


def main() -> None:
    leave_nothing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    kills = parser.parse_args().kills
    with (
        tempfile.TemporaryDirectory() as name,
        Cluster(Path(name) / "source") as source,
        Cluster(Path(name) / "destination") as destination,
    ):
        link = EngineLink("standby", source, destination, Path(name), {"orders": 4})
        link.make_topics()
        link.publish()
        try:
            seconds = take_over(link, kills, seed=7)
            share = standing_by(link)
        finally:
            link.stop()
    print(" ".join(f"{one:.1f}" for one in sorted(seconds)))
    row = (str(kills), f"{median(seconds):.1f} s", f"{max(seconds):.1f} s", f"{100 * share:.1f} %")
    add_row(RESULTS, INTRODUCTION, HEAD, row)


if __name__ == "__main__":
    main()
