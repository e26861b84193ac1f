"""What an audit costs: CPU of one core per byte of log, by batch and by record, with fetching; and its memory.

    PYTHONPATH=benchmarks .venv/bin/python benchmarks/audit.py [--records 400000] [--bytes 1000] [--codec lz4]

Two clusters of one broker each; a link copies a topic, and this process audits it, chunk by chunk, as a task of Spark does.
CPU time is this process's own, so other load matters little; wall time is of a machine that the brokers share.
"""

import argparse
import os
import resource
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from confluent_kafka import Producer

from strait.audit.chunks import chunks_of
from strait.audit.link_state import Ends, map_of, read_link
from strait.audit.observing import plan_copies, plan_link
from strait.audit.plan import AuditPlan
from strait.audit.task import Auditor, TaskSettings
from strait.audit.task_result import ChunkResult
from strait.config.audit import AuditRequest
from strait.config.links import parse
from strait.control.plane import Control
from strait.embedded.kafka import Cluster
from strait.engine.slot import run_slot
from strait.kafka.admin import Admin, NewTopic

TOPIC = "audited"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=400_000)
    parser.add_argument("--bytes", type=int, default=1000)
    parser.add_argument("--codec", default="lz4")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source, destination = (stack.enter_context(Cluster(folder / name)) for name in ("a", "b"))
        Admin(source.client_properties, "a").create([NewTopic(TOPIC, 1, 1, {"retention.ms": "-1"})])
        fill(source, arguments.records, arguments.bytes, arguments.codec)
        copy(source, destination, folder)
        ends = Ends("a", source.client_properties, "b", destination.client_properties)
        by_batch = AuditRequest()
        show("by batch", *measured(ends, plan_link(ends, "a-to-b", by_batch, "bench"), linked=True))
        by_strong = AuditRequest(strong=True)
        show("by batch, --strong", *measured(ends, plan_link(ends, "a-to-b", by_strong, "bench"), linked=True))
        by_record = AuditRequest(relation="order", topics=(TOPIC,))
        show("by record", *measured(ends, plan_copies(ends, {TOPIC: TOPIC}, by_record, "bench"), linked=False))
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB at most, the link's included")


def fill(cluster: Cluster, records: int, size: int, codec: str) -> None:
    """Write values of which half the bytes are random."""
    producer = Producer(
        cluster.client_properties | {"compression.type": codec, "linger.ms": 50, "batch.size": 1 << 20, "acks": 1}
    )
    for number in range(records):
        producer.produce(TOPIC, os.urandom(size // 2) + b"x" * (size - size // 2), b"%d" % number, 0)
        while len(producer) > 50_000:
            producer.poll(0.1)
    if producer.flush(300):
        raise SystemExit("the records could not be written")


def copy(source: Cluster, destination: Cluster, folder: Path) -> None:
    """Run the link until it has caught up."""
    file = parse(
        {
            "clusters": {"a": source.client_properties, "b": destination.client_properties},
            "links": {"a-to-b": {"source": "a", "destination": "b", "topics": {"include": [TOPIC]}}},
        },
        where="links file",
    )
    stop = threading.Event()
    with Control(file, "a-to-b") as control:
        spec = control.spec(control.apply().plan, ledger_dir=folder / "ledger", checkpoint_dir=folder / "checkpoint")
        slot = threading.Thread(target=run_slot, args=(spec, 0, "bench", stop.is_set))
        slot.start()
        while not all(status.partitions and status.lag_records == 0 for status in control.statuses()):
            time.sleep(0.5)
        stop.set()
        slot.join()


def measured(ends: Ends, plan: AuditPlan, *, linked: bool) -> tuple[list[ChunkResult], float, float]:
    """Compare everything; return the results, and the seconds and CPU seconds that it took."""
    state = read_link(ends, plan.link) if linked else None
    names = ends.source, ends.source_properties, ends.destination, ends.destination_properties
    auditor = Auditor(TaskSettings(*names, plan.producer_id, plan.owners, plan.request.strong))
    began, cpu = time.monotonic(), time.process_time()
    results = [
        auditor.compare(chunk)
        for one in plan.partitions
        for chunk in chunks_of(one, plan.request, None if state is None else map_of(one, state))
    ]
    took = time.monotonic() - began, time.process_time() - cpu
    auditor.close()
    return results, *took


def show(what: str, results: list[ChunkResult], seconds: float, cpu_seconds: float) -> None:
    if any(one.verdict != "equal" for one in results):
        raise SystemExit(f"{what}: {[(one.verdict, one.error, one.differences[:3]) for one in results][:3]}")
    size = sum(one.source_bytes + one.copy_bytes for one in results)
    records, batches = (sum(getattr(one, name) for one in results) for name in ("records", "source_batches"))
    print(
        f"{what}: {records:,} records, {size / 1e6:,.0f} MB of both logs, {size / max(1, 2 * batches) / 1024:,.0f} KiB a batch: "
        f"{size / cpu_seconds / 1e9:.2f} GB/s per core, {cpu_seconds:.2f} CPU-s, {seconds:.2f} s"
    )


if __name__ == "__main__":
    main()
