"""Records at a steady pace into one partition, and when each arrived at its copy: by two processes of their own, whose
collectors rest."""

import multiprocessing
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from mm2.latency import STAMP, receive
from mm2.process_tree import ended_after
from strait.control.proposing import collector_paused
from strait.errors import MeasurementError

_VALUE = bytes(192)
_PATIENCE_SECONDS = 120.0


class Arrival(NamedTuple):
    """One record, in ns of the monotonic clock."""

    sent: int
    arrived: int

    @property
    def took(self) -> int:
        return self.arrived - self.sent


def arrivals(
    source: Mapping[str, str], destination: Mapping[str, str], topic: str, per_second: int, seconds: float
) -> list[Arrival]:
    """From before produce() to after poll(), without the first tenth. Raises MeasurementError: some did not arrive."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    count = round(per_second * seconds)
    listener = context.Process(target=_listen, args=(theirs, dict(destination), topic, count))
    sender = context.Process(target=_send, args=(dict(source), topic, per_second, count))
    with ended_after(sender, listener):
        listener.start()
        theirs.close()
        receive(ours, "consumer", _PATIENCE_SECONDS)
        sender.start()
        found = [Arrival(*one) for one in receive(ours, "consumer", seconds + _PATIENCE_SECONDS)]
    if len(found) != count:
        raise MeasurementError(f"{len(found)} of {count} records arrived in {topic}")
    return found[count // 10 :]


@collector_paused()
def _send(properties: dict[str, str], topic: str, per_second: int, count: int) -> None:
    producer = Producer(properties | {"linger.ms": 0, "acks": "all"})
    due = time.monotonic_ns()
    for _ in range(count):
        if (wait := due - time.monotonic_ns()) > 0:
            time.sleep(wait / 1e9)
        producer.produce(topic, STAMP.pack(time.monotonic_ns()) + _VALUE, partition=0)
        producer.poll(0)
        due += 1_000_000_000 // per_second
    producer.flush(_PATIENCE_SECONDS)


@collector_paused()
def _listen(results: Connection, properties: dict[str, str], topic: str, count: int) -> None:
    consumer = Consumer(properties | {"group.id": "paced", "enable.auto.commit": False, "fetch.wait.max.ms": 500})
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_PATIENCE_SECONDS)[1]
    consumer.assign([TopicPartition(topic, 0, end)])
    consumer.poll(1.0)  # it has its place
    results.send([])
    found: list[tuple[int, int]] = []
    quiet_at = time.monotonic() + _PATIENCE_SECONDS
    while len(found) < count and time.monotonic() < quiet_at:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            now = time.monotonic_ns()
            found.append((STAMP.unpack_from(message.value() or b"")[0], now))
            quiet_at = time.monotonic() + _PATIENCE_SECONDS
    consumer.close()
    results.send(found)
