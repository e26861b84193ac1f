"""The demo's clients, with Kafka's ordinary library: `python -m strait.demo.generator`. A shop writes to the source, its
warehouse to the destination, and the shop's billing consumes.

First a history, as fast as possible, then a steady rate until SIGTERM or SIGINT; then all queued records are flushed.
"""

import argparse
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from strait.demo.folder import MOST_INVOICE_BYTES
from strait.demo.records import SHOP, WAREHOUSE, ShopRecord, ShopTopic, records, scanned_invoice
from strait.errors import ClusterUnavailable, StraitError
from strait.text import plural
from strait.waiting import unix_ms

TICK_SECONDS = 0.1
HISTORY_SECONDS = 3600
WAREHOUSE_SHARE = 0.1
"""Warehouse records per shop record."""
GROUP = "billing"
TOPICS = ("orders", "payments")
_POLL_SECONDS = 0.5
_MOST_RECORDS = 1000


class Generator:
    """One producer for each topic, since compression is a producer's setting."""

    def __init__(self, bootstrap: str, topics: Mapping[str, ShopTopic], *, seed: int) -> None:
        self._bootstrap = bootstrap
        self._topics = topics
        self._records: Iterator[ShopRecord] = records(topics, seed)
        self._refused: KafkaError | None = None
        self._producers: Mapping[str, Producer] = {
            name: Producer({"bootstrap.servers": bootstrap, "compression.type": topic.codec, "linger.ms": 20})
            for name, topic in topics.items()
        }

    def create_topics(self) -> None:
        """Create the topics that do not exist yet."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        there = admin.list_topics(timeout=30).topics
        missing = [NewTopic(name, topic.partitions, 1) for name, topic in self._topics.items() if name not in there]
        for future in admin.create_topics(missing, request_timeout=30).values() if missing else ():
            future.result()

    def write_history(self, records: int) -> None:
        """Write this many records without a pause, with timestamps spread over the past hour."""
        now_ms = unix_ms()
        for number in range(records):
            age_ms = HISTORY_SECONDS * 1000 * (records - number) // records
            self.produce(next(self._records), now_ms - age_ms)
        self.flush()

    def write_steadily(self, per_second: int, stop: threading.Event) -> None:
        """Write ``per_second`` records a second until ``stop`` is set."""
        started, written = time.monotonic(), 0
        while not stop.wait(TICK_SECONDS):
            due = int((time.monotonic() - started) * per_second)
            for _ in range(due - written):
                self.produce(next(self._records), unix_ms())
            written = due
            for producer in self._producers.values():
                producer.poll(0)

    def flush(self) -> None:
        """Wait until the cluster has acknowledged every record, for up to 30 s per topic. Raises ClusterUnavailable if
        it has not, or has rejected one."""
        left = sum(producer.flush(30) for producer in self._producers.values())
        if left:
            raise ClusterUnavailable(
                self._bootstrap, f"generator: {plural(left, 'record')} not acknowledged after 30 s"
            )
        self._raise_refusal()

    def produce(self, record: ShopRecord, timestamp_ms: int) -> None:
        """Queue one record for its producer. Raises ClusterUnavailable if an earlier record was rejected."""
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
        except BufferError:  # its queue is full: deliver for up to 1 s, then try once more
            producer.poll(1)
            producer.produce(record.topic, record.value, **arguments)

    def _noted(self, error: KafkaError | None, message: Message) -> None:
        self._refused = self._refused or error

    def _raise_refusal(self) -> None:
        if self._refused is not None:
            raise ClusterUnavailable(self._bootstrap, f"generator: a record was not taken: {self._refused.str()}")


def write_scan(bootstrap: str) -> None:
    """Write an invoice that is larger than the destination accepts. Raises ClusterUnavailable if the source does not take
    it."""
    shop = Generator(bootstrap, {"invoices": SHOP["invoices"]}, seed=unix_ms())
    shop.produce(scanned_invoice(unix_ms(), 2 * MOST_INVOICE_BYTES), unix_ms())
    shop.flush()


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, help="bootstrap address of the shop's cluster")
    parser.add_argument("--destination", required=True, help="that of the warehouse's")
    parser.add_argument("--history", type=int, default=100_000, help="the shop's records before the steady rate")
    parser.add_argument("--per-second", type=int, default=500, help="its records a second from then on")
    parser.add_argument("--seed", type=int, default=1)
    return parser


def consume(bootstrap: str, stop: threading.Event) -> None:
    """Consume as the shop's billing, a group whose offsets the link keeps ready on the destination: from the earliest
    offset, and commit every second, until ``stop`` is set."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 1000,
        }
    )
    consumer.subscribe(list(TOPICS))
    try:
        while not stop.is_set():
            consumer.consume(_MOST_RECORDS, _POLL_SECONDS)
    finally:
        consumer.close()


def main(argv: list[str] | None = None) -> int:
    options = parser().parse_args(argv)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        _run(options, stop)
    except StraitError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    return 0


def _run(options: argparse.Namespace, stop: threading.Event) -> None:
    shop = Generator(options.source, SHOP, seed=options.seed)
    warehouse = Generator(options.destination, WAREHOUSE, seed=options.seed)
    for generator in (shop, warehouse):
        generator.create_topics()
    warehouse.write_history(int(options.history * WAREHOUSE_SHARE))
    shop.write_history(options.history)
    sys.stdout.write(f"wrote a history of {plural(options.history, 'record')}\n")
    sys.stdout.flush()
    others = [
        threading.Thread(target=warehouse.write_steadily, args=(int(options.per_second * WAREHOUSE_SHARE), stop)),
        threading.Thread(target=consume, args=(options.source, stop)),
    ]
    for thread in others:
        thread.start()
    try:
        shop.write_steadily(options.per_second, stop)
    finally:
        stop.set()
        for thread in others:
            thread.join()
    for generator in (shop, warehouse):
        generator.flush()


if __name__ == "__main__":
    sys.exit(main())
