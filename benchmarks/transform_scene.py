"""What `transforms.py` measures with: links whose applications run, topics of JSON records, and what a copier takes to empty
one."""

import itertools
import json
import random
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from strait.config import naming
from strait.embedded.kafka import Cluster
from strait.engine.packing import PACKED_GAPS
from strait.launch import processes
from strait.launch.local import LocalLauncher
from strait.state.codec import encode
from strait.state.packed_gaps import Gaps, pack
from strait.state.schema import OffsetMapping, TopicPolicy
from strait.state.transform import TopicTransform
from support.fixtures.background import beside
from support.fixtures.clusters import Clusters
from support.links.links import Link, link_of

PARTITIONS, RECORD_BYTES = 4, 250
MOST_WAITING = 1_000  # segments
LATENCY_RATE = 500


class Sample(NamedTuple):
    """At a moment: what the copier has used so far, and how many records are there."""

    at: float
    cpu_seconds: float
    records: int


class Drained(NamedTuple):
    """Source records per second of CPU and of time; MiB at most, all processes."""

    per_core: float
    per_second: float
    peak_mib: float


class Scene:
    """Two clusters and a folder."""

    def __init__(self, folder: Path, source: Cluster, destination: Cluster) -> None:
        self.folder, self.source, self.destination = folder, source, destination
        self._count = 0

    def topic(self) -> str:
        """Return a name for a topic of its own."""
        self._count += 1
        return f"bench{self._count}"

    @contextmanager
    def link(self, transform: TopicTransform | None, records: int = 0) -> Iterator[Link]:
        """A link of a topic with so many records, with a plan. Its application ends with the block."""
        name = self.topic()
        folder = self.folder / name
        folder.mkdir()
        launcher = LocalLauncher(folder / "applications")
        clusters = Clusters(self.source, self.destination)
        link = link_of(name, clusters, folder, launcher, slot_memory_bytes=128 << 20)
        fill(self.source, name, records)
        link.publish(slots=1, policy=TopicPolicy(transform=transform))
        try:
            yield link
        finally:
            launcher.stop(name, grace_seconds=20.0)


def values(rng: random.Random, count: int) -> list[bytes]:
    """JSON records of about 250 B, one fifth of them from the US."""
    made = []
    for number in range(count):
        country = rng.choice(["US", "DE", "FR", "JP", "BR"])
        user = f"user-{rng.randrange(10**6)}"
        one = {"id": number, "user": user, "email": f"{user}@example.com", "country": country}
        one |= {"amount": rng.randrange(10**6) / 100, "note": ""}
        one["note"] = rng.randbytes(80).hex()[: RECORD_BYTES - len(json.dumps(one))]
        made.append(json.dumps(one).encode())
    return made


VALUES = values(random.Random(1), 20_000)


def fill(cluster: Cluster, topic: str, records: int) -> None:
    producer = Producer(
        cluster.client_properties
        | {"compression.type": "lz4", "linger.ms": 50, "batch.size": 1 << 17, "queue.buffering.max.messages": 200_000}
    )
    for number in range(records):
        producer.produce(topic, VALUES[number % len(VALUES)], b"%d" % number, number // 500 % PARTITIONS)
        if number % 1_000 == 0:
            producer.poll(0.0)
            while len(producer) > 150_000:
                producer.poll(0.1)
    if producer.flush(300):
        raise SystemExit("the records could not be written")


def write_map(cluster: Cluster, link: str, source_records: int) -> None:
    """Write the offset map of a topic of which every second record was kept, at random."""
    rng = np.random.default_rng(1)

    def gaps() -> tuple[str, int, int]:
        starts, missing = (np.cumsum(rng.geometric(0.5, PACKED_GAPS)) for _ in range(2))
        both = Gaps(*(array("q", column.tobytes()) for column in (starts, missing)))
        return pack(both, bits=True), int(starts[-1]), int(missing[-1])

    texts = [gaps() for _ in range(300)]  # more than fit into a batch, where repetitions would be compressed
    reached = [[0, 0] for _ in range(PARTITIONS)]  # sequence and source offset
    producer = Producer(
        cluster.client_properties | {"compression.type": "zstd", "linger.ms": 20, "message.max.bytes": 8 << 20}
    )
    for number in itertools.count():
        (text, records, gone), place = texts[number % len(texts)], reached[number % PARTITIONS]
        segment = OffsetMapping(
            topic=link, partition=number % PARTITIONS, destination=link, source_id="s" * 22, destination_id="d" * 22,
            source_base=place[1], destination_base=place[0], sequence_base=place[0], gaps=text,
            sequence_end=place[0] + records, checkpoint_at_ms=1, transform="0123456789abcdef",
        )  # fmt: skip
        key, value = encode(segment)
        producer.produce(naming.map_topic(link), value, key)
        while len(producer) > MOST_WAITING:
            producer.poll(0.1)
        place[0] += records
        place[1] += records + gone
        if sum(offset for _, offset in reached) >= source_records:
            break
    if producer.flush(300):
        raise SystemExit("the map could not be written")


def tree_of(link: Link) -> list[psutil.Process]:
    return [one for some in processes.find(link.launcher.directory).values() for one in some]


def drained(
    tree: Callable[[], Sequence[psutil.Process]], copied: Callable[[], int], wanted: int, records: int
) -> Drained:
    """Watch until so many have arrived of so many source records."""
    samples: list[Sample] = []
    used: dict[int, float] = {}
    peak = 0.0
    while not samples or samples[-1].records < wanted:
        memory = 0
        for one in tree():
            try:
                used[one.pid] = sum(one.cpu_times()[:2])
                memory += one.memory_full_info().pss
            except psutil.NoSuchProcess:
                continue
        peak = max(peak, memory / 2**20)
        samples.append(Sample(time.monotonic(), sum(used.values()), copied()))
        time.sleep(0.2)
    middle = next(sample for sample in samples if sample.records >= wanted / 2)
    last = samples[-1]
    share = (last.records - middle.records) / wanted * records
    return Drained(share / (last.cpu_seconds - middle.cpu_seconds), share / (last.at - middle.at), peak)


def latencies(link: Link, seconds: float) -> list[float]:
    consumer = Consumer(
        link.destination.client_properties | {"group.id": "bench", "enable.auto.commit": False, "fetch.wait.max.ms": 5}
    )
    consumer.assign([TopicPartition(link.name, number, 0) for number in range(PARTITIONS)])
    found: list[float] = []

    def produce(stop: threading.Event) -> None:
        producer = Producer(link.source.client_properties | {"linger.ms": 0, "acks": 1})
        base, number = time.monotonic(), 0
        while not stop.is_set():
            stop.wait(max(0.0, base + number / LATENCY_RATE - time.monotonic()))
            one = {"id": time.monotonic_ns(), "user": f"user-{number}", "email": "a@example.com", "country": "DE"}
            one |= {"amount": 1.5, "note": "n" * 130}
            producer.produce(link.name, json.dumps(one), b"%d" % number, number % PARTITIONS)
            producer.poll(0)
            number += 1

    first: int | None = None
    with beside(produce):
        while first is None or time.monotonic_ns() < first + seconds * 1.5e9:
            message = consumer.poll(0.1)
            if message is None or message.error() is not None:
                continue
            now, sent = time.monotonic_ns(), json.loads(message.value())["id"]
            first = now if first is None else first
            if sent > first + seconds * 0.5e9:
                found.append((now - sent) / 1e6)
    consumer.close()
    return found


def trickle(link: Link, stop: threading.Event) -> None:
    producer = Producer(link.source.client_properties | {"linger.ms": 5})
    number = 0
    while not stop.is_set():
        for _ in range(LATENCY_RATE // 20):
            producer.produce(link.name, VALUES[number % len(VALUES)], b"%d" % number, number % PARTITIONS)
            number += 1
        producer.flush(30)
        stop.wait(0.05)
