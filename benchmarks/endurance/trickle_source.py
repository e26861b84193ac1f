"""A trickle of records into one partition, and how long each takes to the copy."""

import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, Producer, TopicPartition

from endurance.rig_link import RigLink
from mm2.latency import LatencyFigures, percentiles

PER_SECOND = 10
_STAMP = struct.Struct(">q")
_PATIENCE_SECONDS = 60.0


@contextmanager
def trickling(link: RigLink, per_second: int = PER_SECOND) -> Iterator[None]:
    """So many records a second into partition 0 of the first topic, as long as the block lasts."""
    ended = threading.Event()
    thread = threading.Thread(target=_send, args=(link, per_second, ended))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def latency(
    link: RigLink, seconds: float, *, warm_up_seconds: float = 5.0, per_second: int = PER_SECOND
) -> LatencyFigures:
    """From before produce() at the source to after poll() at the destination."""
    topic = next(iter(link.topics))
    properties = {"group.id": "trickle", "enable.auto.commit": False, "fetch.wait.max.ms": 1000}
    consumer = Consumer(link.destination.client_properties | properties)
    (_, end) = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_PATIENCE_SECONDS)
    consumer.assign([TopicPartition(topic, 0, end)])
    found: list[int] = []
    deadline = time.monotonic() + warm_up_seconds + seconds
    with trickling(link, per_second):
        while time.monotonic() < deadline:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None and time.monotonic() > deadline - seconds:
                found.append(time.monotonic_ns() - _STAMP.unpack(message.value() or b"")[0])
    consumer.close()
    return percentiles(found)


def _send(link: RigLink, per_second: int, ended: threading.Event) -> None:
    producer = Producer(link.source.client_properties | {"linger.ms": 0})
    topic, due = next(iter(link.topics)), time.monotonic()
    while not ended.wait(max(0.0, due - time.monotonic())):
        producer.produce(topic, _STAMP.pack(time.monotonic_ns()), partition=0)
        producer.poll(0)
        due += 1 / per_second
    producer.flush(_PATIENCE_SECONDS)
