"""A link that has copied all records of its topic and is stopped, and an audit of it."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from support.links.auditing import planned
from support.links.engine_link import EngineLink

RECORDS = 2_000
"""In each partition, in batches of a hundred."""


@contextmanager
def audited_link(
    name: str,
    topic: str,
    partitions: int,
    folder: Path,
    source: Cluster,
    destination: Cluster,
    chance: random.Random,
) -> Iterator[Callable[[], Any]]:
    """Yield a function that audits the whole topic."""
    link = EngineLink(name, source, destination, folder, {topic: partitions})
    link.make_topics()
    _fill(source, topic, partitions, chance)
    link.publish()
    slot = link.start_slot()
    try:
        link.until_copied()
        link.publish(stopped=True)
        slot.wait(60)
        yield planned(link)
    finally:
        link.stop()


def in_batches(cluster: Cluster) -> Producer:
    """Return a producer of batches of a hundred records, which keeps their order when it sends one again."""
    return Producer(
        cluster.client_properties
        | {"compression.type": "lz4", "batch.num.messages": 100, "linger.ms": 100, "enable.idempotence": True}
    )


def _fill(cluster: Cluster, topic: str, partitions: int, chance: random.Random) -> None:
    producer = in_batches(cluster)
    for number in range(RECORDS * partitions):
        producer.produce(topic, chance.randbytes(100), b"%d" % number, number % partitions)
        producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("the source does not take the records")
