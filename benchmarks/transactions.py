"""What do transactions at the source cost the copy?

Two topics hold the same records in the same batches, one of them written in transactions: each puts one batch of 100
records of 1 KiB into each of six partitions, so that a second of 60 MB/s holds 100 transactions in every partition.
Each ends in a marker that is left out of the copy, and each marker is a gap that the map must tell of before what is
behind it is sent. One slot empties both topics by turns.

    python benchmarks/transactions.py [--transactions 1500] [--rounds 3]

Appends a table to results-transactions.md. Rates are of the middle of the copy, from the first tenth to the last.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
from pathlib import Path

import psutil
from confluent_kafka import Producer

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measuring import append_table, middle_rate
from mm2.content import digests
from mm2.topics import Topics
from mm2.workloads import PARTITIONS
from strait.embedded.kafka import Cluster
from support.links.engine_link import EngineLink
from support.reaper import leave_nothing

RESULTS = Path(__file__).parent / "results-transactions.md"
RECORDS = 100
RECORD_BYTES = 1 << 10
LARGEST_COST = 0.2


def fill(cluster: Cluster, topic: str, transactions: int, *, transactional: bool) -> None:
    """Batches of 100 records that do not compress; each row of six in a transaction, or just flushed."""
    payload = random.Random(1).randbytes(1 << 20)
    batching = {"batch.size": 2 * RECORDS * RECORD_BYTES, "linger.ms": 1000}
    identity = {"transactional.id": topic} if transactional else {}
    producer = Producer(cluster.client_properties | batching | identity)
    if transactional:
        producer.init_transactions(60)
    for number in range(transactions):
        if transactional:
            producer.begin_transaction()
        for partition in range(PARTITIONS):
            for record in range(RECORDS):
                start = (number + record) * 37 % (len(payload) - RECORD_BYTES)
                producer.produce(topic, payload[start : start + RECORD_BYTES - 60], partition=partition)
        if transactional:
            producer.commit_transaction(60)
        elif left := producer.flush(60):
            raise TimeoutError(f"{left} records were not taken")


def copy(link: EngineLink, topic: str, records: int) -> tuple[float, float]:
    """Copy the whole topic with this link of its own. MB/s, and the slot's CPU seconds for each GB, its start
    included."""
    link.publish([topic])
    slot = link.start_slot()
    try:
        rate = middle_rate(link.destination, topic, PARTITIONS, records)
        link.until_copied(records)
        times = psutil.Process(slot.pid).cpu_times()
    finally:
        link.stop()
    return rate * RECORD_BYTES / 1e6, (times.user + times.system) / (records * RECORD_BYTES / 1e9)


def require_equal(source: Cluster, destination: Cluster, topic: str, records: int) -> None:
    """Record by record, as an ordinary consumer sees them."""
    one, other = (
        digests(name, cluster.client_properties, topic, records, lambda _: None)
        for name, cluster in (("source", source), ("destination", destination))
    )
    if one != other:
        raise SystemExit(f"the copy of {topic} is not equal")


def measure(transactions: int, rounds: int) -> list[str]:
    """Rows of the table."""
    records = transactions * PARTITIONS * RECORDS
    found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    with tempfile.TemporaryDirectory(prefix="strait-transactions-") as directory:
        folder = Path(directory)
        with (
            Cluster(folder / "source", heap_mib=1024, optimized=True) as source,
            Cluster(folder / "destination", heap_mib=1024, optimized=True) as destination,
        ):
            for number in range(rounds + 1):  # the first one warms up
                for transactional in (False, True):
                    topic = f"{'in-transactions' if transactional else 'plain'}.{number}"
                    link = EngineLink(
                        topic, source, destination, folder, {topic: PARTITIONS}, slot_memory_bytes=128 << 20
                    )
                    brief = {"file.delete.delay.ms": "1000"}
                    link.make_topics(source_configs=brief, destination_configs=brief)
                    fill(source, topic, transactions, transactional=transactional)
                    measured = copy(link, topic, records)
                    require_equal(source, destination, topic, records)
                    for name, cluster in (("source", source), ("destination", destination)):
                        Topics(name, cluster.client_properties).delete([topic])
                    if number or rounds == 0:
                        found[transactional].append(measured)
    (plain, plain_cpu), (inside, inside_cpu) = (
        tuple(map(statistics.median, zip(*found[transactional], strict=True))) for transactional in (False, True)
    )
    cost = 1 - inside / plain
    verdict = "ok" if cost < LARGEST_COST else "missed"
    return [
        f"| plain | {plain:.0f} | {plain_cpu:.2f} | | |",
        f"| in transactions | {inside:.0f} | {inside_cpu:.2f} | {cost:.0%} | {verdict} |",
    ]


def main() -> None:
    leave_nothing()
    options = argparse.ArgumentParser(description="What transactions at the source cost the copy.")
    options.add_argument("--transactions", type=int, default=1500)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--no-record", action="store_true")
    chosen = options.parse_args()
    load = os.getloadavg()[0]
    rows = measure(chosen.transactions, chosen.rounds)
    sys.stdout.writelines(f"{row}\n" for row in rows)
    if not chosen.no_record:
        measured = f"{chosen.transactions} transactions, median of {chosen.rounds}; load average before {load:.2f}."
        append_table(RESULTS, measured, ("source", "MB/s", "CPU-s/GB, start included", "cost", "below 20%"), rows)


if __name__ == "__main__":
    main()
