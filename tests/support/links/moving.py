"""Tools whose copies a link takes over or hands back: streams, copies by hand, and `strait offsets`."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka import Producer

from strait.embedded.kafka import Cluster
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_same_records, read_all

STARTED_MS = int(time.time() * 1000)


def settings(source: Cluster, destination: Cluster, link: str, **of_link: Any) -> dict[str, Any]:
    return {
        "clusters": {"source": dict(source.client_properties), "destination": dict(destination.client_properties)},
        "links": {
            link: {"source": "source", "destination": "destination", "topics": {"regex": [f"{link}-.*"]}} | of_link
        },
    }


class CommandLine:
    """`strait offsets` with a links file."""

    def __init__(self, folder: Path, links: dict[str, Any]) -> None:
        self.folder = folder
        (folder / "links.yaml").write_text(yaml.safe_dump(links))

    def __call__(self, *words: str, code: int = 0) -> str:
        done = subprocess.run(
            [Path(sys.executable).with_name("strait"), "offsets", *words],
            cwd=self.folder, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{done.returncode}: {done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def moves(self, *words: str, code: int = 0) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self("import", *words, "-o", "json", code=code).splitlines()[0])[
            "partitions"
        ]
        return found


class Stream:
    """A producer that goes on until it is stopped. ``written``: so many records."""

    def __init__(self, cluster: Cluster, topic: str, partitions: int) -> None:
        self.written = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(cluster, topic, partitions))
        self._thread.start()

    def _work(self, cluster: Cluster, topic: str, partitions: int) -> None:
        producer = Producer(cluster.client_properties | {"linger.ms": 5})
        while not self._stop.is_set():
            at = self.written
            producer.produce(topic, f"value {at}", f"key {at}", at % partitions, headers={"n": str(at)})
            self.written += 1
            producer.poll(0)
            if at % 20 == 0:
                time.sleep(0.01)
        assert producer.flush(30) == 0

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


@contextmanager
def streaming(cluster: Cluster, topic: str, partitions: int) -> Iterator[Stream]:
    """For as long as the block, if it is not stopped sooner."""
    stream = Stream(cluster, topic, partitions)
    try:
        yield stream
    finally:
        stream.stop()


def write(cluster: Cluster, topic: str, numbers: range, partitions: int = 1) -> None:
    producer = Producer(cluster.client_properties)
    for number in numbers:
        producer.produce(topic, f"value {number}", f"key {number}", number % partitions, timestamp=STARTED_MS + number)
    assert producer.flush(30) == 0


def copied_by_hand(source: Cluster, destination: Cluster, topic: str, numbers: range) -> None:
    """As a tool does that stores nothing."""
    producer = Producer(destination.client_properties)
    for record in read_all(source, topic, 1)[0]:
        if record.offset in numbers:
            producer.produce(topic, record.value, record.key, 0, timestamp=record.timestamp[1])
    assert producer.flush(30) == 0


def until_equal(source: Cluster, destination: Cluster, topic: str, copy: str, partitions: int) -> None:
    """Every record once and in order, and none besides."""
    eventually(
        lambda: sum(ends(destination, copy, partitions)) >= sum(ends(source, topic, partitions)), what="all is copied"
    )
    assert_same_records(read_all(source, topic, partitions), read_all(destination, copy, partitions))
