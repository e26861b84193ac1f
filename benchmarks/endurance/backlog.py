"""Records that do not compress, spread evenly over partitions."""

import random
from collections.abc import Sequence

from confluent_kafka import Producer

from strait.embedded.kafka import Cluster

RECORD_BYTES = 10_000
_PATIENCE_SECONDS = 300.0


def fill(cluster: Cluster, places: Sequence[tuple[str, int]], megabytes: float, seed: int) -> None:
    """Write so much into these partitions (topic, number)."""
    payload = random.Random(seed).randbytes(1 << 20)
    producer = Producer(cluster.client_properties | {"linger.ms": 50, "batch.size": 500_000})
    for number in range(int(megabytes * 1_000_000 / RECORD_BYTES)):
        start = number * 37 % (len(payload) - RECORD_BYTES)
        topic, partition = places[number % len(places)]
        while True:
            try:
                producer.produce(topic, payload[start : start + RECORD_BYTES], partition=partition)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    if left := producer.flush(_PATIENCE_SECONDS):
        raise TimeoutError(f"{left} records were not taken")
