"""Fill a topic with a workload through an ordinary producer, and prove from the broker's log that it is what was
meant."""

import itertools
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mm2.payloads import values
from mm2.progress import Advance
from mm2.workloads import KEY_BYTES, PARTITIONS, Drain
from strait.errors import MeasurementError
from strait.kafka.clients import Watch, make_producer
from strait.wire.batch import CODEC_MASK, split_batches

_CHUNK = 1000
_QUEUED = 200_000
_TOLERANCE = 0.2  # of the intended size of a batch
_FLUSH_SECONDS = 300.0
_CODECS = {"none": 0, "lz4": 3}


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What a topic's log holds, read from the headers of its batches. ``bytes`` as they are on wire and disk."""

    records: int
    batches: int
    bytes: int
    codecs: frozenset[int]

    @property
    def mean_batch_bytes(self) -> float:
        return self.bytes / self.batches if self.batches else 0.0


def fill(properties: Mapping[str, str], topic: str, drain: Drain, advance: Advance) -> None:
    """Write the workload's records, evenly over the partitions. Each key is the record's number."""
    watch = Watch("source")
    producer = make_producer(properties, watch, **_batching(drain))
    numbered = enumerate(itertools.islice(itertools.cycle(values(drain.value_bytes)), drain.records))
    partitions = itertools.cycle(range(PARTITIONS))
    while chunk := [
        {"key": number.to_bytes(KEY_BYTES, "big"), "value": value}
        for number, value in itertools.islice(numbered, _CHUNK)
    ]:
        while len(producer) > _QUEUED:
            producer.poll(0.01)
        queued = producer.produce_batch(topic, chunk, partition=next(partitions))
        if queued != len(chunk):
            raise MeasurementError(f"source: filling {topic}: the producer took {queued} of {len(chunk)} records")
        advance(int.from_bytes(chunk[-1]["key"], "big"))
    if left := producer.flush(_FLUSH_SECONDS):
        raise MeasurementError(f"source: filling {topic}: {left} records are not acknowledged")


def _batching(drain: Drain) -> dict[str, str | int]:
    common: dict[str, str | int] = {
        "compression_type": drain.compression,
        "queue_buffering_max_messages": 2 * _QUEUED,
        "queue_buffering_max_kbytes": 1 << 20,
    }
    if drain.batch_bytes is None:
        return common | {"batch_num_messages": 1, "linger_ms": 0}
    # Nothing but its size may close a batch: no time-out, no number of records.
    return common | {"batch_size": drain.buffer_bytes, "batch_num_messages": 1_000_000, "linger_ms": 10_000}


def read_batches(data: Path, topic: str) -> BatchFacts:
    """Read every batch header of a topic from the broker's log folders below ``data``."""
    records = batches = size = 0
    codecs = set()
    for segment in sorted(data.rglob(f"{topic}-[0-9]*/*.log")):
        if segment.stat().st_size == 0:
            continue
        with segment.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            view = memoryview(mapped)
            for batch in split_batches(view):
                records += batch.records
                batches += 1
                size += len(batch.view)
                codecs.add(batch.attributes & CODEC_MASK)
                batch.view.release()
            view.release()
    return BatchFacts(records, batches, size, frozenset(codecs))


def check(facts: BatchFacts, drain: Drain) -> None:
    """Raises MeasurementError where the log is not the workload: other counts, batch sizes or compression."""
    if facts.records != drain.records:
        raise MeasurementError(
            f"source: workload {drain.name}: {facts.records} of {drain.records} records were written"
        )
    if facts.codecs != {_CODECS[drain.compression]}:
        raise MeasurementError(f"source: workload {drain.name}: batches use codecs {sorted(facts.codecs)}")
    if drain.batch_bytes is None:
        if facts.batches != facts.records:
            raise MeasurementError(f"source: workload {drain.name}: {facts.records} records in {facts.batches} batches")
        return
    full = drain.batch_bytes * 2 * PARTITIONS  # of less, the last batches of the partitions spoil the mean
    if facts.bytes > 4 * full and abs(facts.mean_batch_bytes / drain.batch_bytes - 1) > _TOLERANCE:
        raise MeasurementError(
            f"source: workload {drain.name}: batches have {facts.mean_batch_bytes:,.0f} bytes on average, "
            f"{drain.batch_bytes:,} were intended"
        )
