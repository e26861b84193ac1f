"""What the scenarios of `pools.py` share: Spark applications that are measured, links, and those who write and read."""

import datetime
import multiprocessing
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from strait.config.app_spec import AppSpec, PoolSpec
from strait.config.links import Spark
from strait.config.pools import Pool
from strait.embedded.kafka import Cluster
from strait.launch import processes
from strait.launch.base import State
from strait.launch.local import LocalLauncher
from strait.planning.assignment.pools import pool_spec
from support.fixtures.background import beside
from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink

PARTITIONS = 10
SETTLED_SECONDS = 20.0


def say(text: str) -> None:
    """Print what is done now."""
    print(f"{datetime.datetime.now(datetime.UTC):%H:%M:%S} {text}", flush=True)


class Application:
    """One Spark application of links, in a directory of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._launcher = LocalLauncher(folder / "applications")
        self._spec: PoolSpec | None = None

    def host(self, links: Sequence[EngineLink]) -> None:
        """Run these links; start the application if it does not run."""
        before = self._spec
        spec = self._spec = pool_spec(
            self._name, Pool(slots=1), [link.spec for link in links], before, str(self._folder / "checkpoint"),
            measured={}, runs=before is not None, balance=False,
        )  # fmt: skip
        found = self._launcher.state(self._name)
        if found is not None and found.state.alive:
            self._launcher.update(found, spec)
        else:
            self.start(spec)

    def start(self, spec: AppSpec | PoolSpec) -> None:
        """Submit it."""
        path = self._folder / f"{self._name}.json"
        spec.write(path)
        self._launcher.submit(self._name, path, Spark())

    def until_running(self) -> None:
        """Wait until Spark runs the slots; before, processes beside it do."""
        eventually(
            lambda: (found := self._launcher.state(self._name)) is not None and found.state is State.RUNNING,
            what="Spark runs",
            within_seconds=300.0,
        )
        time.sleep(SETTLED_SECONDS)  # what Spark does at its start is over

    def cpu_seconds(self) -> dict[int, float]:
        """By process."""
        return {one.pid: sum(one.cpu_times()[:2]) for one in self._processes()}

    def memory_bytes(self) -> int:
        """Of all processes together, pages that they share counted once."""
        return sum(proportional_set_size(one.pid) for one in self._processes())

    def stop(self) -> None:
        """End it."""
        self._launcher.stop(self._name, grace_seconds=5.0)

    def _processes(self) -> list[psutil.Process]:
        return [one for some in processes.find(self._launcher.directory).values() for one in some]


class Scene:
    """Two clusters, and links between them with a topic of ten partitions each."""

    def __init__(self, source: Cluster, destination: Cluster, folder: Path, seconds: float) -> None:
        self.source, self.destination, self.folder, self.seconds = source, destination, folder, seconds
        self._made = 0

    def links(self, count: int) -> list[EngineLink]:
        """Make so many planned links."""
        made = []
        for _ in range(count):
            self._made += 1
            topics = {f"topic-{self._made}": PARTITIONS}
            link = EngineLink(
                f"link-{self._made}", self.source, self.destination, self.folder, topics, slot_memory_bytes=128 << 20
            )
            link.make_topics()
            link.publish()
            made.append(link)
            if self._made % 10 == 0:
                say(f"{self._made} links are made")
        return made

    @contextmanager
    def pool(self, name: str, links: Sequence[EngineLink]) -> Iterator[Application]:
        """Run the links in one application, until all report."""
        application = Application(self.folder / name, name)
        (self.folder / name).mkdir()
        application.host(links)
        try:
            for number, link in enumerate(links, 1):
                eventually(lambda link=link: link.reporters(), what=f"{link.name} runs", within_seconds=300.0)
                if number % 10 == 0:
                    say(f"{number} links report")
            application.until_running()
            yield application
        finally:
            application.stop()

    @contextmanager
    def alone(self, name: str, link: EngineLink) -> Iterator[Application]:
        """Run one link in an application of its own, until it reports."""
        application = Application(self.folder / name, name)
        (self.folder / name).mkdir()
        application.start(link.spec)
        try:
            eventually(link.reporters, what=f"{link.name} runs", within_seconds=300.0)
            application.until_running()
            yield application
        finally:
            application.stop()

    def share(self, application: Application) -> float:
        """Share of a core that the application takes from now on."""
        before = application.cpu_seconds()
        time.sleep(self.seconds)
        return sum(after - before.get(pid, 0.0) for pid, after in application.cpu_seconds().items()) / self.seconds


class Pauses:
    """The longest time between two arrivals in a topic, since it was last asked."""

    def __init__(self, properties: Mapping[str, str], topic: str) -> None:
        self._consumer = Consumer(
            {**properties, "group.id": "pauses", "enable.auto.commit": False, "fetch.wait.max.ms": 5}
        )
        self._consumer.assign([TopicPartition(topic, number, -1) for number in range(PARTITIONS)])
        self._longest = 0.0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def longest(self) -> float:
        found, self._longest = self._longest, 0.0
        return found

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        last = 0.0
        while not self._stopped.is_set():
            if self._consumer.poll(0.5) is not None:
                now = time.monotonic()
                self._longest = max(self._longest, now - last if last else 0.0)
                last = now


class Traffic:
    """Writes to topics, and watches how evenly some of them arrive, in a process of its own: what the scenario does meanwhile
    would delay it."""

    def __init__(self, scene: Scene, links: Sequence[EngineLink], per_second: float, watched: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._asking, asked = context.Pipe()
        source, destination = scene.source.client_properties, scene.destination.client_properties
        arguments = asked, dict(source), dict(destination), topics_of(links), per_second, watched
        self._process = context.Process(target=_traffic, args=arguments, daemon=True)

    def __enter__(self) -> "Traffic":
        self._process.start()
        self.longest()
        return self

    def __exit__(self, *_: object) -> None:
        self._asking.send(False)
        self._process.join(60)

    def longest(self) -> float:
        """Return the longest pause of any watched topic since the last call, in seconds."""
        self._asking.send(True)
        return float(self._asking.recv())


def _traffic(
    asked: "Connection[Any, Any]",
    source: Mapping[str, str],
    destination: Mapping[str, str],
    topics: Sequence[str],
    per_second: float,
    watched: int,
) -> None:
    pauses = [Pauses(destination, topic) for topic in topics[:watched]]
    with writing(source, topics, per_second):
        while asked.recv():
            asked.send(max(one.longest() for one in pauses))
    for one in pauses:
        one.stop()


def topics_of(links: Sequence[EngineLink]) -> list[str]:
    return [topic for link in links for topic in link.topics]


@contextmanager
def writing(properties: Mapping[str, str], topics: Sequence[str], per_second: float) -> Iterator[None]:
    """Write so many small records a second to each topic, evenly."""
    producer = Producer({**properties, "linger.ms": 0, "acks": "all"})

    def run(stopped: threading.Event) -> None:
        at, step, number = time.monotonic(), 1.0 / (per_second * len(topics)), 0
        while not stopped.is_set():
            while at <= time.monotonic():
                producer.produce(topics[number % len(topics)], b"x" * 200, partition=number // len(topics) % PARTITIONS)
                number, at = number + 1, at + step
            producer.poll(0)
            time.sleep(0.001)

    try:
        with beside(run):
            yield
    finally:
        producer.flush(30)


def fill(cluster: Cluster, topic: str, records: int) -> None:
    """A backlog of records of 1 KiB in large batches."""
    producer = Producer(cluster.client_properties | {"compression.type": "lz4", "linger.ms": 50, "batch.size": 1 << 17})
    for number in range(records):
        while True:
            try:
                producer.produce(topic, b"%010d" % number * 100, partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    if producer.flush(120):
        raise RuntimeError("the source does not take the backlog")


def proportional_set_size(pid: int) -> int:
    """Memory of a process in bytes, pages that it shares counted in part; 0: it has ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss:")), 0)
