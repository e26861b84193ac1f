"""Somebody who writes into a link's topics while a test breaks things.

The records are of now unless a test wants old ones: those are sent by one copy at a time, and tests that race copies
want them to race.
"""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaException, Producer

from strait.embedded.kafka import Cluster

_PATIENCE_SECONDS = 120.0
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Writer:
    """Records of seeded sizes, keys, headers and codecs, dealt out to every partition of ``topics`` (name ->
    partitions), at most ``per_second`` of them, until ``stop`` or ``records`` are written. Their timestamps begin
    ``age_seconds`` ago."""

    def __init__(
        self,
        cluster: Cluster,
        topics: dict[str, int],
        *,
        seed: int,
        per_second: float,
        records: int | None = None,
        age_seconds: float = 0.0,
    ) -> None:
        self._places = [(topic, partition) for topic, count in topics.items() for partition in range(count)]
        self._rng = random.Random(seed)
        self._payload = self._rng.randbytes(1 << 13)
        self._producers = [
            Producer(
                cluster.client_properties
                | {
                    "linger.ms": 5,
                    "compression.type": codec,
                    "batch.size": self._rng.choice([2_000, 30_000, 200_000]),
                    "queue.buffering.max.messages": 1_000_000,
                    "message.timeout.ms": 0,  # the source may be down for as long as the test likes
                    "topic.metadata.refresh.interval.ms": 5_000,  # else one may miss for minutes that it is back
                    "enable.idempotence": True,  # in order, so that what is read back is what was meant
                }
            )
            for codec in CODECS
        ]
        self._per_second = per_second
        self._records = records
        self._first_ms = int((time.time() - age_seconds) * 1000)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write_all, name="writer")
        self._failure: Exception | None = None
        self.written = 0

    def start(self) -> None:
        self._thread.start()

    @property
    def writing(self) -> bool:
        return self._thread.is_alive()

    def stop(self) -> None:
        """Return when all that was begun is written."""
        self._stop.set()
        self.finish()

    def finish(self) -> None:
        """Return when all ``records`` are written. Raises what kept it from that."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _write_all(self) -> None:
        try:
            self._run()
        except (AssertionError, BufferError, KafkaException) as failure:
            self._failure = failure

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._stop.is_set() and self.written != self._records:
            producer = self._producers[self.written // 500 % len(self._producers)]
            self._write(producer)
            self.written += 1
            if self.written % 100 == 0:
                producer.poll(0)
                self._stop.wait(max(0.0, begun + self.written / self._per_second - time.monotonic()))
        for producer in self._producers:
            before = len(producer) + 1
            while left := producer.flush(_PATIENCE_SECONDS):
                if left >= before and self._records is None:
                    producer.purge()  # librdkafka's idempotent producer may wait for ever after a broker's restart
                    break
                if left >= before:
                    raise AssertionError(f"the source does not take the last {left} records")
                before = left

    def _write(self, producer: Producer) -> None:
        topic, partition = self._places[self._rng.randrange(len(self._places))]
        start = self._rng.randrange(4_000)
        number = self.written
        producer.produce(
            topic,
            self._payload[start : start + self._rng.choice([0, 50, 200, 4_000])],
            b"%d" % number,
            partition,
            headers=[("n", b"%d" % number)] if number % 10 == 0 else None,
            timestamp=self._first_ms + number // 10,
        )


@contextmanager
def writing(
    cluster: Cluster,
    topics: dict[str, int],
    *,
    seed: int,
    per_second: float = 5_000,
    records: int | None = None,
    age_seconds: float = 0.0,
) -> Iterator[Writer]:
    """Write in the background: until ``records`` are written, or as long as the block lasts."""
    writer = Writer(cluster, topics, seed=seed, per_second=per_second, records=records, age_seconds=age_seconds)
    writer.start()
    try:
        yield writer
        if records is not None:
            writer.finish()
    finally:
        writer.stop()
