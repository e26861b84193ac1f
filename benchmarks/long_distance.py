"""Does a round trip of 100 ms slow one partition down?

One partition full of 128 KiB batches is copied through a proxy that delays each direction of every connection of the
slot to one of the two clusters; first without delay, so that the proxy itself is in both rates. The proxy takes all
that is sent at once and holds it for as long as the way is: what it shows is how the engine's requests depend on the
round trip. TCP's windows and loss are not in it.

    python benchmarks/long_distance.py [--megabytes 1000] [--round-trip-ms 100] [--rounds 3]

Appends a table to results-long-distance.md. Rates are of the middle of the copy, from the first tenth to the last.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measuring import append_table, middle_rate
from mm2.topics import Topics
from support.kafka.log_ends import ends
from support.kafka.records import assert_copied
from support.links.far import FarCluster, FarLink, running
from support.reaper import leave_nothing

RESULTS = Path(__file__).parent / "results-long-distance.md"
BATCH_BYTES = 128 << 10
RECORD_BYTES = 1 << 10


def fill(cluster: FarCluster, topic: str, megabytes: int) -> None:
    """Records of 1 KiB that do not compress, in full batches of 128 KiB."""
    payload = random.Random(1).randbytes(1 << 20)
    producer = Producer(
        cluster.client_properties
        | {"batch.size": BATCH_BYTES, "linger.ms": 100, "queue.buffering.max.messages": 1_000_000}
    )
    for number in range(megabytes * 1_000_000 // RECORD_BYTES):
        start = number * 37 % (len(payload) - RECORD_BYTES)
        while True:
            try:
                producer.produce(topic, payload[start : start + RECORD_BYTES - 60], partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(120)
    if left:
        raise TimeoutError(f"{left} records were not taken")


def rate(source: FarCluster, destination: FarCluster, folder: Path, megabytes: int, name: str) -> float:
    """Copy the whole topic with a link of its own; MB/s between a tenth and nine tenths of it."""
    link = FarLink(name, source, destination, folder, {name: 1}, slot_memory_bytes=128 << 20)
    brief = {"file.delete.delay.ms": "1000"}
    link.make_topics(source_configs=brief, destination_configs=brief)
    fill(source, name, megabytes)
    (written,) = ends(source, name, 1)
    link.publish()
    link.start_slot()
    try:
        found = middle_rate(destination, name, 1, written)
        link.until_copied()
    finally:
        link.stop()
    assert_copied(source, destination, name, 1)
    for end, cluster in (("source", source), ("destination", destination)):
        Topics(end, cluster.client_properties).delete([name])
    return found * RECORD_BYTES / 1e6


def measure(megabytes: int, round_trip_seconds: float, rounds: int) -> list[str]:
    """Rows of the table."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="strait-distance-") as directory:
        folder = Path(directory)
        options = {"optimized": True, "heap_mib": 1024}
        source, destination = FarCluster(folder / "source", **options), FarCluster(folder / "destination", **options)
        with running(source, destination):
            for end, cluster in (("source", source), ("destination", destination)):
                rates: dict[bool, list[float]] = {False: [], True: []}
                for number in range(rounds + 1):  # the first one warms up
                    for far in (False, True):
                        cluster.proxy.delay(round_trip_seconds if far else 0.0)
                        found = rate(source, destination, folder, megabytes, f"{end}.{number}.{far}")
                        if number or rounds == 0:
                            rates[far].append(found)
                        cluster.proxy.calm()
                near, long = statistics.median(rates[False]), statistics.median(rates[True])
                rows.append(f"| {end} | {near:.0f} | {long:.0f} | {long / near:.2f} |")
                sys.stdout.write(f"{rows[-1]}\n")
    return rows


def main() -> None:
    leave_nothing()
    options = argparse.ArgumentParser(description="Rate of one partition over a long way, against a short one.")
    options.add_argument("--megabytes", type=int, default=1000)
    options.add_argument("--round-trip-ms", type=float, default=100.0)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--no-record", action="store_true")
    chosen = options.parse_args()
    load = os.getloadavg()[0]
    rows = measure(chosen.megabytes, chosen.round_trip_ms / 1000, chosen.rounds)
    if not chosen.no_record:
        what = f"{chosen.megabytes} MB, {chosen.round_trip_ms:g} ms, median of {chosen.rounds}"
        measured = f"{what}; load average before {load:.2f}."
        append_table(RESULTS, measured, ("far end", "MB/s near", "MB/s far", "ratio"), rows)


if __name__ == "__main__":
    main()
