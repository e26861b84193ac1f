"""Producers of transactions, and the map held against what they have written."""

import random
import threading
import time
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from strait.state.offset_map import Gap, covering, destination_offset, gaps_of
from support.fixtures.background import background
from support.kafka.records import read_all
from support.links.engine_link import EngineLink

_SECONDS = 60.0


class Transactions:
    """One transactional producer. Its records' keys tell who, which transaction, and which of its records."""

    def __init__(self, cluster: Cluster, name: str, topic: str, partitions: int) -> None:
        self._name = name
        self._topic = topic
        self._partitions = partitions
        self._number = 0
        self._first_ms = int(time.time() * 1000)  # old records would be sent by one copy at a time
        self._producer = Producer(
            cluster.client_properties | {"transactional.id": name, "linger.ms": 0, "compression.type": "lz4"}
        )
        self._producer.init_transactions(_SECONDS)

    def begin(self) -> None:
        self._number += 1
        self._producer.begin_transaction()

    def write(self, records: int, payload: bytes = b"", partition: int | None = None) -> None:
        """So many records, on the log when this returns, round the partitions or all into one."""
        for number in range(records):
            self._producer.produce(
                self._topic,
                payload + b"%d" % number,
                f"{self._name} {self._number} {number}".encode(),
                number % self._partitions if partition is None else partition,
                headers=[("n", b"%d" % number)] if number % 3 == 0 else None,
                timestamp=self._first_ms + self._number,
            )
        assert self._producer.flush(_SECONDS) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(_SECONDS)

    def abort(self) -> None:
        self._producer.abort_transaction(_SECONDS)

    def end(self, commit: bool) -> None:
        if commit:
            self.commit()
        else:
            self.abort()


@contextmanager
def small_transactions(link: EngineLink, topic: str, count: int, seed: int) -> Iterator[threading.Thread]:
    """Write so many transactions of a few records in the background, some of them aborted, two open at a time, plain
    records between them."""
    partitions = link.topics[topic]
    producers = [Transactions(link.source, f"{topic}-{number}", topic, partitions) for number in range(2)]
    plain = Producer(link.source.client_properties)

    def write(stop: threading.Event) -> None:
        rng = random.Random(seed)
        for number in range(count):
            if stop.is_set():
                return
            first, second = rng.sample(producers, 2)
            first.begin()
            first.write(rng.randrange(1, 6), partition=rng.randrange(partitions))
            if number % 3 == 0:
                second.begin()
                second.write(rng.randrange(1, 6), partition=rng.randrange(partitions))
                second.end(rng.random() < 0.5)
            if number % 5 == 0:
                plain.produce(topic, b"plain", b"%d" % number, rng.randrange(partitions))
                assert plain.flush(_SECONDS) == 0
            first.end(rng.random() < 0.7)

    with background(write) as thread:
        yield thread


def assert_map_is_exact(link: EngineLink) -> None:
    """Each record's place in source and destination is what the map says of its number."""
    for topic, partitions in link.topics.items():
        written, copied = read_all(link.source, topic, partitions), read_all(link.destination, topic, partitions)
        for partition in range(partitions):
            runs = link.runs(topic, partition)
            words = sorted({gap for run in runs for gap in gaps_of(run)})
            for sequence, (record, copy) in enumerate(zip(written[partition], copied[partition], strict=True)):
                word = words[bisect_right(words, Gap(sequence, record.offset)) - 1]
                source = word.source + sequence - word.sequence
                said = source, destination_offset(covering(runs, sequence), sequence)
                assert said == (record.offset, copy.offset), f"{topic}-{partition}: record {sequence}: {runs}"
