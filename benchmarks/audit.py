"""What an audit costs: CPU per byte of log, by batch, by record and by the ledger, with fetching; how it scales over executors;
the memory of a task; and the latency of a live link beside an audit with a budget.

    PYTHONPATH=benchmarks:tests .venv/bin/python benchmarks/audit.py [--records 400000] [--bytes 1000] [--codec lz4] [--record]

Two clusters of one broker each; a link copies a topic of four partitions. Processes that stand for executors audit it, chunk by
chunk, as a task of Spark does; Spark itself is not measured. CPU time is that of these processes, so other load matters little;
wall time is of a machine that the brokers share.
"""

import argparse
import multiprocessing
import os
import resource
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from measuring import append_table
from strait.audit.chunks import Chunk, chunks_of
from strait.audit.ledger_plan import plan_ledger, wanted
from strait.audit.ledger_rows import ledger_chunks
from strait.audit.ledger_topic import rows_in_topic
from strait.audit.link_state import Ends, map_of, read_link
from strait.audit.observing import plan_copies, plan_link
from strait.audit.plan import AuditPlan
from strait.audit.task import Auditor, TaskSettings
from strait.audit.task_result import ChunkResult
from strait.config.app_spec import AppSpec
from strait.config.audit import AuditRequest
from strait.config.cluster import Cluster as Named
from strait.config.links import parse
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.engine.slot import run_slot
from strait.kafka.admin import Admin, NewTopic
from strait.model import TopicPartition as Partition
from strait.spark.audit_task import give_way
from support.reaper import leave_nothing

TOPIC, LIVE = "audited", "live"
LINK = "a-to-b"
PARTITIONS = 4
EXECUTORS = (1, 2, 4)
BUDGET = 20_000_000
_AUDIT_STARTS_SECONDS = 4.0  # its process imports Python's modules, which the budget does not limit
LIVE_RATE = 200
RESULTS = Path(__file__).with_name("results-audit.md")


class Measured(NamedTuple):
    """One audit, by some executors. ``peak``: MiB that an executor took at most, and before its first chunk."""

    results: list[ChunkResult]
    seconds: float
    cpu_seconds: float
    peak: tuple[float, float]


def main() -> None:
    leave_nothing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--bytes", type=int, default=1000)
    parser.add_argument("--codec", default="lz4")
    parser.add_argument(
        "--seconds", type=float, default=15.0, help="Of each of the six measurements of latency; 0: none."
    )
    parser.add_argument("--record", action="store_true", help="Add the run to results-audit.md.")
    arguments = parser.parse_args()
    rows: list[str] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source, destination = (stack.enter_context(Cluster(folder / name)) for name in ("a", "b"))
        kept = {"retention.ms": "-1"}
        Admin(source.client_properties, "a").create([NewTopic(TOPIC, PARTITIONS, 1, kept), NewTopic(LIVE, 1, 1, kept)])
        fill(source, arguments.records, arguments.bytes, arguments.codec)
        ends = Ends("a", source.client_properties, "b", destination.client_properties)
        with copying(source, destination, folder):
            plan = plan_link(ends, LINK, AuditRequest(topics=(TOPIC,)), "bench")
            if arguments.seconds:
                rows += live_rows(source, destination, ends, plan, arguments.seconds)
        by_batch = {executors: audited(ends, plan, executors) for executors in EXECUTORS}
        rows += [row("by batch", executors, found) for executors, found in by_batch.items()]
        strong = plan_link(ends, LINK, AuditRequest(topics=(TOPIC,), strong=True), "bench")
        rows.append(row("by batch, --strong", 1, audited(ends, strong, 1)))
        by_order = plan_copies(ends, {TOPIC: TOPIC}, AuditRequest(relation="order", topics=(TOPIC,)), "bench")
        for executors in EXECUTORS:
            rows.append(row("by record", executors, audited(ends, by_order, executors)))
        rows.append(row("by the ledger", 1, audited(ends, ledger_plan(ends), 1)))
    print("\n".join([*rows, calculated(by_batch)]))
    if arguments.record:
        what = f"{arguments.records:,} records of {arguments.bytes:,} B, {arguments.codec}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        append_table(RESULTS, f"{what}. {calculated(by_batch)}", HEAD, rows)


def calculated(found: dict[int, Measured]) -> str:
    """What follows for 1 TB on each side from the measured CPU of each number of executors, if each has a core: here they
    share two with both brokers, which is why they are not so much faster together."""
    parts = []
    for executors, one in found.items():
        rate = executors * size_of(one) / one.cpu_seconds
        parts.append(f"{executors} in {2e12 / rate / 60:.0f} minutes, from a network of {rate * 8 / 1e9:.0f} Gbit/s")
    return (
        "Calculated for 1 TB on each side by batch, executors with a core each and brokers of their own: "
        f"{'; '.join(parts)}. With less the network is the limit: 10 Gbit/s take {2e12 / 1.25e9 / 60:.0f} minutes."
    )


def size_of(found: Measured) -> int:
    """Bytes that were compared, of both sides."""
    return sum(one.source_bytes + one.copy_bytes for one in found.results)


HEAD = (
    "what",
    "executors",
    "MB of logs",
    "KiB a batch",
    "GB/s per core",
    "GB/s together",
    "MiB a task",
    "MiB before it",
)


def row(what: str, executors: int, found: Measured) -> str:
    if any(one.verdict != "equal" for one in found.results):
        raise SystemExit(f"{what}: {[(one.verdict, one.error, one.differences[:3]) for one in found.results][:3]}")
    size = size_of(found)
    batches = sum(one.source_batches + one.copy_batches for one in found.results)
    cells = (
        what,
        str(executors),
        f"{size / 1e6:,.0f}",
        f"{size / max(1, batches) / 1024:,.0f}",
        f"{size / found.cpu_seconds / 1e9:.2f}",
        f"{size / found.seconds / 1e9:.2f}",
        *(f"{one:,.0f}" for one in found.peak),
    )
    return f"| {' | '.join(cells)} |"


def audited(ends: Ends, plan: AuditPlan, executors: int, bytes_per_second: float = 0.0) -> Measured:
    """Compare everything in so many processes."""
    names = ends.source, ends.source_properties, ends.destination, ends.destination_properties
    settings = TaskSettings(*names, plan.producer_id, plan.owners, plan.request.strong, bytes_per_second / executors)
    chunks = chunks_in(ends, plan)
    with ProcessPoolExecutor(executors, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(warm, [settings] * executors))
        began = time.monotonic()
        compared = list(
            pool.map(partial(compare, settings), [chunks[number::executors] for number in range(executors)])
        )
        seconds = time.monotonic() - began
    results = [one for some, _, _ in compared for one in some]
    return Measured(results, seconds, sum(cpu for _, cpu, _ in compared), max(peak for _, _, peak in compared))


def chunks_in(ends: Ends, plan: AuditPlan) -> list[Chunk]:
    if plan.request.relation == "ledger":
        there = Named(ends.destination_properties, ends.destination)
        rows = rows_in_topic(there, LINK, wanted(plan.partitions, {one.topic: one.copy_id for one in plan.topics}))
        return [
            chunk
            for one in plan.partitions
            for chunk in ledger_chunks(one, rows[Partition(one.topic, one.partition)], plan.request)
        ]
    state = read_link(ends, plan.link) if plan.link else None
    return [
        chunk
        for one in plan.partitions
        for chunk in chunks_of(one, plan.request, None if state is None else map_of(one, state))
    ]


def ledger_plan(ends: Ends) -> AuditPlan:
    there = Named(ends.destination_properties, ends.destination)
    request = AuditRequest(relation="ledger", topics=(TOPIC,))
    return plan_ledger(ends, LINK, request, "bench", partial(rows_in_topic, there, LINK))


def warm(settings: TaskSettings) -> None:
    """Start an executor, and import all that a task needs."""
    Auditor(settings).close()
    time.sleep(1.0)  # so that each call is another process's


def compare(settings: TaskSettings, chunks: Sequence[Chunk]) -> tuple[list[ChunkResult], float, tuple[float, float]]:
    """Compare chunks in this process; return the results, its CPU seconds, and its memory at most and before."""
    before, cpu = _peak_mib(), time.process_time()
    auditor = Auditor(settings)
    results = [auditor.compare(chunk) for chunk in chunks]
    auditor.close()
    return results, time.process_time() - cpu, (_peak_mib(), before)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def live_rows(source: Cluster, destination: Cluster, ends: Ends, plan: AuditPlan, seconds: float) -> list[str]:
    """Measure a live topic's latency, beside an audit and without one, in turns: other load of the machine comes and goes."""
    found: dict[bool, list[float]] = {False: [], True: []}
    for beside in (False, True) * 3:
        stop = threading.Event()
        audit = threading.Thread(target=_audit_again, args=(ends, plan, stop)) if beside else None
        if audit:
            audit.start()
            time.sleep(_AUDIT_STARTS_SECONDS)
        found[beside] += latencies(source, destination, seconds)
        stop.set()
        if audit:
            audit.join()
    rows = []
    for beside, values in found.items():
        parts = statistics.quantiles(values, n=100)
        what = f"latency beside an audit of {BUDGET / 1e6:.0f} MB/s" if beside else "latency without an audit"
        rows.append(f"| {what}, ms: p50 {parts[49]:.1f}, p90 {parts[89]:.1f}, p99 {parts[98]:.1f} |" + " |" * 7)
    return rows


def _audit_again(ends: Ends, plan: AuditPlan, stop: threading.Event) -> None:
    """Audit chunk after chunk, below the budget, in a process of its own."""
    names = ends.source, ends.source_properties, ends.destination, ends.destination_properties
    settings = TaskSettings(*names, plan.producer_id, plan.owners, plan.request.strong, BUDGET)
    chunks = chunks_in(ends, plan)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=give_way) as pool:
        while not stop.is_set():
            for chunk in chunks:
                if not stop.is_set():
                    pool.submit(compare_beside, settings, chunk).result()


_kept: list[Auditor] = []
"""Of this process, as of a task of Spark: its connections and its budget stay."""


def compare_beside(settings: TaskSettings, chunk: Chunk) -> None:
    if not _kept:
        _kept.append(Auditor(settings))
    _kept[0].compare(chunk)


def latencies(source: Cluster, destination: Cluster, seconds: float) -> list[float]:
    """Return ms from each live record's production to its arrival at a consumer of the destination."""
    consumer = Consumer(
        destination.client_properties
        | {"group.id": "bench", "enable.auto.commit": False, "fetch.wait.max.ms": 5, "check.crcs": False}
    )
    end = consumer.get_watermark_offsets(TopicPartition(LIVE, 0), timeout=30)[1]
    consumer.assign([TopicPartition(LIVE, 0, end)])
    producer = Producer(source.client_properties | {"linger.ms": 0, "acks": 1})
    found: list[float] = []
    count = int(seconds * LIVE_RATE)

    def produce() -> None:
        began = time.monotonic()
        for number in range(count):
            time.sleep(max(0.0, began + number / LIVE_RATE - time.monotonic()))
            producer.produce(LIVE, b"%d" % time.monotonic_ns())
            producer.poll(0)
        producer.flush(30)

    writer = threading.Thread(target=produce)
    writer.start()
    deadline = time.monotonic() + seconds + 30
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            found.append((time.monotonic_ns() - int(message.value() or b"0")) / 1e6)
    writer.join()
    consumer.close()
    return found[len(found) // 10 :]


def fill(cluster: Cluster, records: int, size: int, codec: str) -> None:
    """Write values of which half the bytes are random."""
    producer = Producer(
        cluster.client_properties | {"compression.type": codec, "linger.ms": 50, "batch.size": 1 << 20, "acks": 1}
    )
    for number in range(records):
        producer.produce(TOPIC, os.urandom(size // 2) + b"x" * (size - size // 2), b"%d" % number, number % PARTITIONS)
        while len(producer) > 50_000:
            producer.poll(0.1)
    if producer.flush(300):
        raise SystemExit("the records could not be written")


@contextmanager
def copying(source: Cluster, destination: Cluster, folder: Path) -> Iterator[None]:
    """Run the link; the block begins once it has caught up. At its end it writes its last rows of the ledger."""
    file = parse(
        {
            "clusters": {"a": source.client_properties, "b": destination.client_properties},
            "links": {LINK: {"source": "a", "destination": "b", "topics": {"include": [TOPIC, LIVE]}}},
        },
        where="links file",
    )
    processes = multiprocessing.get_context("spawn")
    stop = processes.Event()
    with Control(file, LINK) as control:
        spec = control.spec(control.apply().plan, ledger_dir=folder / "ledger", checkpoint_dir=folder / "checkpoint")
        slot = processes.Process(target=run, args=(spec, stop))
        slot.start()
        try:
            while not all(status.partitions and status.lag_records == 0 for status in control.statuses()):
                time.sleep(0.5)
            yield
        finally:
            stop.set()
            slot.join()


def run(spec: AppSpec, stop: Event) -> None:
    """Run the link's slot in this process."""
    run_slot(spec, 0, "bench", stop.is_set)


if __name__ == "__main__":
    main()
