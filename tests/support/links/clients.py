"""Clients that a failover moves: they work on one cluster until it asks for their end, and keep count of every record."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from support.fixtures.waiting import eventually
from support.kafka.groups import Reader
from support.kafka.java_reader import JavaReader
from support.kafka.transactions import Transactions

_AFTERWARDS_SECONDS = 1.0
"""Consumers that have all go on reading for so long: a record that comes twice may come late."""


@dataclass
class MovingGroup:
    """A consumer group of one member, and the keys of all records that it has processed, wherever."""

    name: str
    join: Callable[[Cluster], Reader | JavaReader]
    processed: list[bytes] = field(default_factory=list)

    def work(self, cluster: Cluster, pause_seconds: float, stopped: threading.Event) -> None:
        """Process some records, commit, pause; leave when told to."""
        reader = self.join(cluster)
        try:
            while not stopped.is_set():
                before = len(reader.keys)
                reader.take()
                self.processed += reader.keys[before:]
                reader.commit()
                stopped.wait(pause_seconds)
        finally:
            reader.leave()


def java_groups(jvm: Any, topic: str, name: str = "java") -> list[MovingGroup]:
    """One of each protocol, with Kafka's own consumer."""
    return [_moving(f"{topic}-{name}-{how}", topic, how, jvm) for how in ("classic", "consumer")]


def librdkafka_groups(topic: str) -> list[MovingGroup]:
    """One of each protocol."""
    return [_moving(f"{topic}-librdkafka-{how}", topic, how, None) for how in ("classic", "consumer")]


def _moving(group: str, topic: str, protocol: str, jvm: Any) -> MovingGroup:
    def join(cluster: Cluster) -> Reader | JavaReader:
        if jvm is None:
            return Reader(cluster, group, topic, protocol)
        return JavaReader(jvm, cluster, group, topic, protocol)

    return MovingGroup(group, join)


class Clients:
    """A writer of plain records and of transactions, some of them aborted, and consumer groups, each with a pace of its
    own for each stay, so that most leave a cluster before they have read all of it."""

    def __init__(self, topic: str, partitions: int, groups: Sequence[MovingGroup], seed: int) -> None:
        self.groups = groups
        self.written: list[bytes] = []
        self._topic = topic
        self._partitions = partitions
        self._rng = random.Random(seed)
        self._stays = 0
        self._ended = {"producers": threading.Event(), "consumers": threading.Event()}
        self._threads: dict[str, list[threading.Thread]] = {}

    @contextmanager
    def on(self, cluster: Cluster, *, writing: bool = True) -> Iterator[None]:
        """They work there until they are asked for their end, at the latest when the block is over."""
        self._stays += 1
        seed = self._rng.random()
        self._ended = {name: threading.Event() for name in self._ended}
        stop = self._ended["consumers"]
        pauses = [self._rng.choice((0.0, 0.3, 1.0, 3.0)) if writing else 0.0 for _ in self.groups]
        self._threads = {
            "producers": [threading.Thread(target=self._write, args=(cluster, seed))] if writing else [],
            "consumers": [
                threading.Thread(target=group.work, args=(cluster, pause, stop))
                for group, pause in zip(self.groups, pauses, strict=True)
            ],
        }
        for thread in (thread for threads in self._threads.values() for thread in threads):
            thread.start()
        try:
            yield
        finally:
            self.end("producers")
            self.end("consumers")

    def asked(self, verdict: str, step: str) -> None:
        """What a failover tells of its steps: who is waited for, ends."""
        if verdict == "waiting" and step in self._ended:
            self.end(step)

    def end(self, which: str) -> None:
        """Producers or consumers: in order, and they are gone then."""
        self._ended[which].set()
        for thread in self._threads[which]:
            thread.join(90)
            assert not thread.is_alive(), f"{which} do not end"

    def read_the_rest(self, cluster: Cluster) -> None:
        """Until every group has all that was written, and a moment longer."""
        with self.on(cluster, writing=False):
            eventually(
                lambda: all(set(self.written) <= set(group.processed) for group in self.groups),
                what=lambda: f"of {len(self.written)}: {[len(set(group.processed)) for group in self.groups]}",
            )
            time.sleep(_AFTERWARDS_SECONDS)

    def assert_each_once(self) -> None:
        """Every group has processed every record once."""
        written = Counter(self.written)
        for group in self.groups:
            found = Counter(group.processed)
            twice, missed = found - written, written - found
            assert not twice, f"{group.name}: {twice.total()} twice, as {sorted(twice)[:3]}"
            assert not missed, f"{group.name}: {missed.total()} missed, as {sorted(missed)[:3]}"

    def _write(self, cluster: Cluster, seed: float) -> None:
        """Keys say which stay, which batch, which of its records."""
        rng, stop, number = random.Random(seed), self._ended["producers"], 0
        plain = Producer(cluster.client_properties | {"linger.ms": 5, "enable.idempotence": True})
        name = f"{self._topic[-8:]}-{self._stays}"
        transactions = Transactions(cluster, name, self._topic, self._partitions)
        while not stop.is_set():
            records, kind = rng.randrange(1, 40), rng.choice(("plain", "committed", "aborted"))
            if kind == "plain":
                keys = [f"plain {self._stays} {len(self.written) + one}".encode() for one in range(records)]
                for key in keys:
                    plain.produce(self._topic, b"value", key, rng.randrange(self._partitions))
                assert plain.flush(60) == 0
            else:
                number += 1
                transactions.begin()
                transactions.write(records)
                transactions.end(kind == "committed")
                keys = [f"{name} {number} {one}".encode() for one in range(records)]
            self.written += keys if kind != "aborted" else []
            stop.wait(rng.uniform(0.0, 0.2))
