"""Keeps writing the shop's records to a cluster with Kafka's ordinary client: `python -m strait.demo.generator`.

First a history, as fast as it goes, then a steady rate until SIGTERM or SIGINT; what was handed over is flushed then.
"""

import argparse
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from strait.demo.records import SHOP, ShopRecord, shop_records
from strait.errors import ClusterUnavailable, StraitError

TICK_SECONDS = 0.1
HISTORY_SECONDS = 3600


class Generator:
    """One producer for each topic, since compression is a producer's setting."""

    def __init__(self, bootstrap: str, *, seed: int) -> None:
        self._bootstrap = bootstrap
        self._records: Iterator[ShopRecord] = shop_records(seed)
        self._refused: KafkaError | None = None
        self._producers: Mapping[str, Producer] = {
            topic: Producer({"bootstrap.servers": bootstrap, "compression.type": shop.codec, "linger.ms": 20})
            for topic, shop in SHOP.items()
        }

    def create_topics(self) -> None:
        """Make the topics that are not there yet."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        there = admin.list_topics(timeout=30).topics
        missing = [NewTopic(topic, shop.partitions, 1) for topic, shop in SHOP.items() if topic not in there]
        for future in admin.create_topics(missing, request_timeout=30).values() if missing else ():
            future.result()

    def write_history(self, records: int) -> None:
        """Write ``records`` at once, with timestamps spread over the past hour."""
        now_ms = time.time_ns() // 1_000_000
        for number in range(records):
            age_ms = HISTORY_SECONDS * 1000 * (records - number) // records
            self._produce(next(self._records), now_ms - age_ms)
        self.flush()

    def write_steadily(self, per_second: int, stop: threading.Event) -> None:
        """Write ``per_second`` records a second until ``stop`` is set."""
        started, written = time.monotonic(), 0
        while not stop.wait(TICK_SECONDS):
            due = int((time.monotonic() - started) * per_second)
            for _ in range(due - written):
                self._produce(next(self._records), time.time_ns() // 1_000_000)
            written = due
            for producer in self._producers.values():
                producer.poll(0)

    def flush(self) -> None:
        """Wait until the cluster has everything. Raises ClusterUnavailable where it took something not."""
        left = sum(producer.flush(30) for producer in self._producers.values())
        if left:
            raise ClusterUnavailable(self._bootstrap, f"generator: {left} records not acknowledged after 30 s")
        self._raise_refusal()

    def _produce(self, record: ShopRecord, timestamp_ms: int) -> None:
        self._raise_refusal()
        producer = self._producers[record.topic]
        arguments = {
            "key": record.key,
            "headers": record.headers,
            "timestamp": timestamp_ms,
            "on_delivery": self._noted,
        }
        try:
            producer.produce(record.topic, record.value, **arguments)
        except BufferError:  # its queue is full: let it deliver, then hand over once more
            producer.poll(1)
            producer.produce(record.topic, record.value, **arguments)

    def _noted(self, error: KafkaError | None, message: Message) -> None:
        self._refused = self._refused or error

    def _raise_refusal(self) -> None:
        if self._refused is not None:
            raise ClusterUnavailable(self._bootstrap, f"generator: a record was not taken: {self._refused.str()}")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--history", type=int, default=100_000, help="records written at once, before the steady rate")
    parser.add_argument("--per-second", type=int, default=500, help="records a second from then on")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(argv)

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        generator = Generator(options.bootstrap, seed=options.seed)
        generator.create_topics()
        generator.write_history(options.history)
        sys.stdout.write(f"wrote a history of {options.history} records\n")
        sys.stdout.flush()
        generator.write_steadily(options.per_second, stop)
        generator.flush()
    except StraitError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
