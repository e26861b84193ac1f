"""What do many links cost that share one Spark application?

    python benchmarks/pools.py [--only idle] [--links 20] [--seconds 60]

Scenarios: `idle` links without traffic; `trickle`, 10 records a second for each of 100 links; `busy`, one link with a
backlog among idle ones, beside the same link with an application of its own; `join`, one more link while the others
copy. Appends a row for each to results-pools.md.
"""

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from measuring import add_row, middle_rate
from strait.config.app_spec import AppSpec, PoolSpec
from strait.config.links import Spark
from strait.config.pools import Pool
from strait.embedded.kafka import Cluster
from strait.launch import processes
from strait.launch.local import LocalLauncher
from strait.planning.assignment.pools import pool_spec
from strait.state.reader import StateReader
from strait.state.report_records import LATENCY_BOUNDS_MS
from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink

RESULTS = Path(__file__).parent / "results-pools.md"
INTRODUCTION = (
    "# Pools\n\nMade by `pools.py`: links that share one Spark application, `local`. Memory is the proportional set size "
    "of all of its processes and CPU their share of a core, without the brokers'. Bounds: 20 idle links 2 GB and 0.15 core; "
    "100 links with 10 records/s each 4 GB, 1 core and p99 10 ms; a busy link in a pool of 20 at least 0.95 of its rate "
    "alone; a link that joins copies within 5 s, and no other pauses for more than 50 ms."
)
HEAD = ("scenario", "links", "partitions", "memory", "CPU", "result")
PARTITIONS = 10
SETTLED_SECONDS = 20.0
_PAGE_MAP = "smaps_rollup"


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

    def cpu_seconds(self) -> dict[int, float]:
        """By process."""
        return {one.pid: sum(one.cpu_times()[:2]) for one in self._processes()}

    def memory_bytes(self) -> int:
        """Of all processes together, pages that they share counted once."""
        return sum(_proportional_set_size(one.pid) for one in self._processes())

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
            link = EngineLink(f"link-{self._made}", self.source, self.destination, self.folder, topics)
            link.make_topics()
            link.publish()
            made.append(link)
        return made

    @contextmanager
    def pool(self, name: str, links: Sequence[EngineLink]) -> Iterator[Application]:
        """Run the links in one application, until all report."""
        application = Application(self.folder / name, name)
        (self.folder / name).mkdir()
        application.host(links)
        try:
            for link in links:
                eventually(lambda link=link: link.reporters(), what=f"{link.name} runs", within_seconds=300.0)
            time.sleep(SETTLED_SECONDS)  # what Spark does at its start is over
            yield application
        finally:
            application.stop()

    def share(self, application: Application) -> float:
        """Share of a core that the application takes from now on."""
        before = application.cpu_seconds()
        time.sleep(self.seconds)
        return sum(after - before.get(pid, 0.0) for pid, after in application.cpu_seconds().items()) / self.seconds


def idle(scene: Scene, count: int) -> None:
    """Links without traffic."""
    links = scene.links(count)
    with scene.pool("idle", links) as application:
        share = scene.share(application)
        record("idle", count, application, share, "")


def trickle(scene: Scene, count: int) -> None:
    """Ten records a second for each link."""
    links = scene.links(count)
    with scene.pool("trickle", links) as application, writing(scene.source, links, 10.0):
        time.sleep(SETTLED_SECONDS)
        before = latency_counts(links)
        share = scene.share(application)
        counts = [after - earlier for after, earlier in zip(latency_counts(links), before, strict=True)]
        result = f"{sum(counts)} records timed, p50 ≤ {bound(counts, 0.5)} ms, p99 ≤ {bound(counts, 0.99)} ms"
        record("trickle", count, application, share, result)


def busy(scene: Scene, count: int) -> None:
    """A backlog of one link, with an application of its own and in the pool."""
    records, rates = 1_000_000, []
    for is_pooled in (False, True):
        link, *others = scene.links(count if is_pooled else 1)
        fill(scene.source, next(iter(link.topics)), records)
        application = Application(scene.folder / f"busy-{is_pooled}", "busy")
        (scene.folder / f"busy-{is_pooled}").mkdir()
        if is_pooled:
            application.host([link, *others])
        else:
            application.start(link.spec)
        try:
            rates.append(middle_rate(scene.destination, next(iter(link.topics)), PARTITIONS, records))
        finally:
            application.stop()
    alone, pooled = rates
    row = (
        "busy",
        str(count),
        str(PARTITIONS),
        "-",
        "-",
        f"{pooled:,.0f} of {alone:,.0f} records/s: {pooled / alone:.2f}",
    )
    add_row(RESULTS, INTRODUCTION, HEAD, row)


def join(scene: Scene, count: int) -> None:
    """One more link, while the others copy a hundred records a second each."""
    *links, new = scene.links(count + 1)
    with scene.pool("join", links) as application, ExitStack() as load:
        load.enter_context(writing(scene.source, links, 100.0))
        fill(scene.source, next(iter(new.topics)), 1000)
        pauses = [Pauses(scene.destination, next(iter(link.topics))) for link in links[:3]]
        time.sleep(5.0)
        usual = max(one.longest() for one in pauses)
        began = time.monotonic()
        application.host([*links, new])
        eventually(lambda: new.copied() > 0, what="its first record")
        seconds = time.monotonic() - began
        time.sleep(5.0)
        longest = max(one.longest() for one in pauses)
        for one in pauses:
            one.stop()
        result = f"first record after {seconds:.1f} s; longest pause of others {longest * 1000:.0f} ms, before {usual * 1000:.0f} ms"
        record("join", count + 1, application, 0.0, result)


class Pauses:
    """The longest time between two arrivals in a topic, since it was last asked."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._consumer = Consumer(
            cluster.client_properties | {"group.id": "pauses", "enable.auto.commit": False, "fetch.wait.max.ms": 5}
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


@contextmanager
def writing(cluster: Cluster, links: Sequence[EngineLink], per_second: float) -> Iterator[None]:
    """Write so many small records a second to each link's topic, evenly."""
    producer = Producer(cluster.client_properties | {"linger.ms": 0, "acks": "all"})
    topics = [topic for link in links for topic in link.topics]
    stopped = threading.Event()

    def run() -> None:
        at, step, number = time.monotonic(), 1.0 / (per_second * len(topics)), 0
        while not stopped.is_set():
            while at <= time.monotonic():
                producer.produce(topics[number % len(topics)], b"x" * 200, partition=number // len(topics) % PARTITIONS)
                number, at = number + 1, at + step
            producer.poll(0)
            time.sleep(0.001)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
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


def latency_counts(links: Sequence[EngineLink]) -> list[int]:
    """Records by their latency's class, of all links together, as the slots report them."""
    total = [0] * (len(LATENCY_BOUNDS_MS) + 1)
    for link in links:
        with StateReader(link.destination.client_properties, "destination", link.name, follow=("reports",)) as state:
            state.catch_up()
            newest = max((one for some in state.reports.values() for one in some), key=lambda one: one.at_ms)
        total = [sum(pair) for pair in zip(total, newest.latency_counts, strict=True)]
    return total


def bound(counts: Sequence[int], share: float) -> float:
    """The upper bound of the class that holds this quantile."""
    wanted, seen = share * sum(counts), 0
    for limit, count in zip((*LATENCY_BOUNDS_MS, float("inf")), counts, strict=True):
        seen += count
        if seen >= wanted:
            return limit
    return float("inf")


def record(scenario: str, links: int, application: Application, share: float, result: str) -> None:
    memory = f"{application.memory_bytes() / 1e9:.2f} GB"
    row = (scenario, str(links), str(links * PARTITIONS), memory, f"{share:.2f} core" if share else "-", result)
    add_row(RESULTS, INTRODUCTION, HEAD, row)


def _proportional_set_size(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/{_PAGE_MAP}").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Pss:")), 0)


SCENARIOS: dict[str, tuple[Callable[[Scene, int], None], int]] = {
    "idle": (idle, 20),
    "trickle": (trickle, 100),
    "busy": (busy, 20),
    "join": (join, 20),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SCENARIOS)
    parser.add_argument("--links", type=int, help="default: 20, in trickle 100")
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    for name in [arguments.only] if arguments.only else SCENARIOS:
        run, count = SCENARIOS[name]
        with (
            tempfile.TemporaryDirectory() as folder,
            Cluster(Path(folder) / "source") as source,
            Cluster(Path(folder) / "destination") as destination,
        ):
            run(Scene(source, destination, Path(folder), arguments.seconds), arguments.links or count)


if __name__ == "__main__":
    main()
