"""What do a slot's many idle partitions cost, and how exactly is a bandwidth budget held?

Idle: one slot looks after all partitions of a topic, to which nothing is written; its CPU over some time.
Budget: a topic of incompressible records is copied under a budget; what arrived after some time, against what was
    allowed.

    python benchmarks/many_partitions.py [--partitions 1000] [--brokers 1] [--seconds 30] [--rate 5000000]

Appends a table to results-many-partitions.md.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import psutil
from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measuring import add_row
from strait.embedded.kafka import Cluster
from strait.state.schema import Budget
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.links.engine_link import EngineLink
from support.reaper import leave_nothing

RESULTS = Path(__file__).parent / "results-many-partitions.md"
INTRODUCTION = (
    "# Many partitions in a slot, and budgets\n\nMade by `many_partitions.py`. Bounds: idle below 5 % of a core, "
    "budget within 10 %."
)
HEAD = ("partitions, idle", "brokers", "of a core", "budget", "held")
RECORD_BYTES = 10_000


def fill(link: EngineLink, topic: str, total_bytes: int) -> None:
    """Incompressible records, spread evenly."""
    payload = random.Random(1).randbytes(1 << 20)
    producer = Producer(link.source.client_properties | {"linger.ms": 20})
    for number in range(total_bytes // RECORD_BYTES):
        start = number * 37 % (len(payload) - RECORD_BYTES)
        producer.produce(topic, payload[start : start + RECORD_BYTES], partition=number % link.topics[topic])
        producer.poll(0.001)
    if left := producer.flush(120):
        raise TimeoutError(f"{left} records were not taken")


def idle_share(source: Cluster, destination: Cluster, folder: Path, partitions: int, seconds: float) -> float:
    """Share of a core that one slot takes."""
    link = EngineLink("idle", source, destination, folder, {"idle": partitions})
    link.make_topics()
    link.publish()
    slot = psutil.Process(link.start_slot().pid)
    try:
        with link.reports() as newest:

            def caught_up() -> bool:
                row = newest("idle", partitions - 1)
                return row is not None and row.state == "caught_up"

            eventually(caught_up, what="all are caught up", within_seconds=300.0)
        time.sleep(5.0)  # let what the start left over pass
        before = slot.cpu_times()
        time.sleep(seconds)
        after = slot.cpu_times()
    finally:
        link.stop()
    return (after.user + after.system - before.user - before.system) / seconds


def budget_ratio(source: Cluster, destination: Cluster, folder: Path, rate: int, seconds: float) -> float:
    """Bytes that arrived in the time, against those that were allowed."""
    link = EngineLink("budget", source, destination, folder, {"budget": 4})
    link.make_topics()
    fill(link, "budget", int(rate * (seconds + 10)))
    link.publish(budgets=(Budget(bytes_per_second=rate, slot_shares=(1.0,)),))
    link.start_slot()

    def copied() -> int:
        return sum(ends(destination, "budget", 4)) * RECORD_BYTES

    try:
        eventually(lambda: copied() > rate, what="copying goes on")
        first, begun = copied(), time.monotonic()
        time.sleep(seconds)
        return (copied() - first) / (rate * (time.monotonic() - begun))
    finally:
        link.stop()


def main() -> None:
    leave_nothing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rate", type=int, default=5_000_000, help="bytes a second")
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        Cluster(Path(name) / "source", brokers=asked.brokers) as source,
        Cluster(Path(name) / "destination") as destination,
    ):
        folder = Path(name)
        share = idle_share(source, destination, folder, asked.partitions, asked.seconds)
        ratio = budget_ratio(source, destination, folder, asked.rate, asked.seconds)
    row = (
        f"{asked.partitions:,}",
        str(asked.brokers),
        f"{share:.1%}",
        f"{asked.rate / 1e6:g} MB/s",
        f"{ratio:.1%}",
    )
    add_row(RESULTS, INTRODUCTION, HEAD, row)


if __name__ == "__main__":
    main()
