"""How long a record takes from produce() at the source to the consumer at the destination.

Producer and consumer are processes of their own, so that no interpreter lock of theirs shows up in the numbers; both
read the machine's one monotonic clock. The consumer measures all it sees; what was sent while warming up is left out.
"""

import math
import multiprocessing
import struct
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

from confluent_kafka import TopicPartition

from mm2.payloads import values
from mm2.process_tree import ended_after
from mm2.progress import Advance
from mm2.workloads import PARTITIONS, Trickle
from strait.control.proposing import collector_paused
from strait.errors import MeasurementError
from strait.kafka.clients import Watch, make_consumer, make_producer

STAMP = struct.Struct(">q")
_PATIENCE_SECONDS = 60.0
_NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class LatencyFigures:
    """Percentiles of produce-to-consume times, in milliseconds."""

    records: int
    p50_ms: float
    p90_ms: float
    p99_ms: float
    p999_ms: float
    max_ms: float


def probe(properties: Mapping[str, str], topic: str) -> None:
    """Write one record into each partition, so that a copier can be seen to have begun."""
    producer = make_producer(properties, Watch("source"))
    for partition in range(PARTITIONS):
        producer.produce(topic, STAMP.pack(0), partition=partition)
    if producer.flush(_PATIENCE_SECONDS):
        raise MeasurementError(f"source: topic {topic} takes no records")


def measure_latency(
    source: Mapping[str, str],
    topic: str,
    destination: Mapping[str, str],
    destination_topic: str,
    trickle: Trickle,
    advance: Advance,
) -> LatencyFigures:
    """Send the trickle and measure it. The destination topic already has the probe's records.

    Raises:
        MeasurementError: records are missing, or the producer could not keep its pace.
    """
    total_seconds = trickle.warm_up_seconds + trickle.seconds
    count = round(trickle.records_per_second * total_seconds)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    listener = context.Process(
        target=_listen, args=(theirs, dict(destination), destination_topic, count), name="listen"
    )
    sender = context.Process(target=_send, args=(dict(source), topic, trickle, count), name="send")
    with ended_after(sender, listener):
        listener.start()
        theirs.close()
        receive(ours, "consumer", _PATIENCE_SECONDS)  # it has its place in each partition
        sender.start()
        started = time.monotonic()
        while not ours.poll(0.5):
            advance(min(time.monotonic() - started, total_seconds))
            if time.monotonic() - started > total_seconds + 2 * _PATIENCE_SECONDS:
                raise MeasurementError(f"latency: nothing heard from the consumer of {destination_topic}")
        seen = receive(ours, "consumer", _PATIENCE_SECONDS)
    if len(seen) != count:
        raise MeasurementError(f"latency: {len(seen)} of {count} records arrived in {destination_topic}")
    begin = min(sent for sent, _ in seen) + trickle.warm_up_seconds * 1e9
    _require_pace(seen, trickle)
    return percentiles(latency for sent, latency in seen if sent >= begin)


def percentiles(latencies_ns: Iterable[int]) -> LatencyFigures:
    """Pure: nearest-rank percentiles."""
    ordered = sorted(latencies_ns)
    if not ordered:
        raise MeasurementError("latency: no record was measured")

    def at(quantile: float) -> float:
        return ordered[max(0, math.ceil(quantile * len(ordered)) - 1)] / _NS_PER_MS

    return LatencyFigures(len(ordered), at(0.5), at(0.9), at(0.99), at(0.999), ordered[-1] / _NS_PER_MS)


def _require_pace(seen: Sequence[tuple[int, int]], trickle: Trickle) -> None:
    times = [sent for sent, _ in seen]
    seconds = (max(times) - min(times)) / 1e9
    pace = (len(seen) - 1) / seconds if seconds else math.inf
    if pace < 0.9 * trickle.records_per_second:
        raise MeasurementError(
            f"latency: {pace:.0f} records a second were sent instead of {trickle.records_per_second}",
            hint="the machine is too busy to measure latency",
        )


def receive(connection: Connection, whose: str, timeout_seconds: float) -> list[tuple[int, int]]:
    """What a process of a measurement sends. Raises MeasurementError: it ended, or said nothing for so long."""
    try:
        if connection.poll(timeout_seconds):
            received: list[tuple[int, int]] = connection.recv()
            return received
    except EOFError:
        raise MeasurementError(f"latency: the {whose} ended before it had measured") from None
    raise MeasurementError(f"latency: the {whose} said nothing for {timeout_seconds:.0f} s")


@collector_paused()  # its pauses would be the records' delays
def _send(properties: dict[str, str], topic: str, trickle: Trickle, count: int) -> None:
    producer = make_producer(properties, Watch("source"), linger_ms=0)
    body = values(trickle.value_bytes - STAMP.size)
    interval_ns = 1_000_000_000 // trickle.records_per_second
    due = time.monotonic_ns()
    for number in range(count):
        if (wait := due - time.monotonic_ns()) > 0:
            time.sleep(wait / 1e9)
        stamp = STAMP.pack(time.monotonic_ns())
        producer.produce(topic, stamp + body[number % len(body)], partition=number % PARTITIONS)
        producer.poll(0)
        due += interval_ns
    producer.flush(_PATIENCE_SECONDS)


@collector_paused()  # what is seen stays, and would be looked through again and again
def _listen(results: Connection, properties: dict[str, str], topic: str, count: int) -> None:
    consumer = make_consumer(properties, Watch("destination"), group_id="strait-bench", auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    seen: list[tuple[int, int]] = []
    probes = 0
    while len(seen) < count:
        message = consumer.poll(_PATIENCE_SECONDS)
        now = time.monotonic_ns()
        if message is None or message.error() is not None:
            break
        (sent,) = STAMP.unpack_from(message.value() or b"")
        if sent:
            seen.append((sent, now - sent))
            continue
        probes += 1
        if probes == PARTITIONS:
            results.send([])  # ready
    results.send(seen)
    consumer.close()
