"""How soon is the first record there after `strait run` has been started, and where does the time go?

    python benchmarks/start.py [--rounds 3] [--before PATH]

``--before`` names another checkout of Strait, which runs in turns with this one; pyspark and all else are the same for both.
Prints the processes of the last start, each from when to when and with its CPU. Appends a row to results-start.md.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil
from confluent_kafka import KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from confluent_kafka.cimpl import NewTopic

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measuring import add_row
from mm2.strait_runner import command
from strait.embedded.kafka import Cluster
from support.reaper import leave_nothing

RESULTS = Path(__file__).parent / "results-start.md"
INTRODUCTION = (
    "# Start\n\nMade by `start.py`: seconds from starting `strait run` on an idle machine, with two slots and six "
    "partitions, until the first record is on the destination; median and all rounds. CPU-seconds are those of all its "
    "processes until then. `before`: another checkout, in turns with this one."
)
HEAD = ("this", "rounds", "CPU-s", "before", "rounds", "CPU-s")
PARTITIONS = 6
_LOOK_SECONDS = 0.05
HERE = Path(__file__).parents[1]


class Start(NamedTuple):
    """One: seconds until the first record, and every process that was seen: its beginning, CPU-seconds, command line."""

    seconds: float
    processes: dict[int, tuple[float, float, str]]

    @property
    def cpu_seconds(self) -> float:
        return sum(cpu for _, cpu, _ in self.processes.values())


def start(checkout: Path, folder: Path, source: Cluster, destination: Cluster, topic: str) -> Start:
    """Start `strait run` of a checkout on a topic of its own, and end it when the first record is there."""
    folder.mkdir()
    admin = AdminClient(source.client_properties)
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    producer = Producer(source.client_properties)
    for number in range(1000 * PARTITIONS):
        producer.produce(topic, b"x" * 100, partition=number % PARTITIONS)
    producer.flush()
    run = command(folder, source, destination, topic, slots=2)
    environment = os.environ | run.environment | {"PYTHONPATH": str(checkout / "include")}
    began = time.time()
    with run.log.open("wb") as log:
        process = subprocess.Popen(run.argv, env=environment, stdout=log, stderr=log)
    found: dict[int, tuple[float, float, str]] = {}
    arrived = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, began, found, arrived))
    watcher.start()
    try:
        _until_a_record_is_there(destination, run.destination_topic, began + 120)
        return Start(time.time() - began, found)
    finally:
        arrived.set()
        watcher.join()
        process.send_signal(signal.SIGTERM)
        process.wait()


def _watch(pid: int, began: float, found: dict[int, tuple[float, float, str]], arrived: threading.Event) -> None:
    root = psutil.Process(pid)
    while not arrived.wait(_LOOK_SECONDS):
        for process in [root, *root.children(recursive=True)]:
            try:
                cpu, words = process.cpu_times(), process.cmdline()
                found[process.pid] = process.create_time() - began, cpu.user + cpu.system, " ".join(words[-3:])
            except psutil.Error:
                continue  # it has ended meanwhile


def _until_a_record_is_there(destination: Cluster, topic: str, deadline: float) -> None:
    client = AdminClient(destination.client_properties)
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(PARTITIONS)}
    while not _end(client, asked):
        if time.time() > deadline:
            raise SystemExit(f"no record of {topic} arrived")
        time.sleep(_LOOK_SECONDS)


def _end(client: AdminClient, asked: dict[TopicPartition, OffsetSpec]) -> int:
    try:
        return sum(int(each.result().offset) for each in client.list_offsets(asked, request_timeout=10).values())
    except KafkaException:
        return 0  # the topic is not there yet


def main() -> None:
    leave_nothing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--before", type=Path, help="another checkout of Strait")
    options = parser.parse_args()
    checkouts = [HERE] if options.before is None else [options.before.resolve(), HERE]
    starts: dict[Path, list[Start]] = {checkout: [] for checkout in checkouts}
    with (
        tempfile.TemporaryDirectory() as name,
        Cluster(Path(name) / "source") as source,
        Cluster(Path(name) / "destination") as destination,
    ):
        for number in range(options.rounds):
            for checkout in checkouts:
                topic = f"start-{number}-{checkouts.index(checkout)}"
                starts[checkout].append(start(checkout, Path(name) / topic, source, destination, topic))
    for pid, (at, cpu, words) in sorted(starts[HERE][-1].processes.items(), key=lambda item: item[1]):
        sys.stdout.write(f"{at:6.2f} s  {cpu:5.2f} CPU-s  {pid}  {words[-100:]}\n")
    row = [*_cells(starts[HERE]), *(("–", "–", "–") if options.before is None else _cells(starts[checkouts[0]]))]
    add_row(RESULTS, INTRODUCTION, HEAD, row)


def _cells(found: list[Start]) -> tuple[str, str, str]:
    seconds = sorted(one.seconds for one in found)
    cpu = median(one.cpu_seconds for one in found)
    return f"{median(seconds):.1f} s", ", ".join(f"{one:.1f}" for one in seconds), f"{cpu:.1f}"


if __name__ == "__main__":
    main()
