"""What do many links cost that share one Spark application?

    python benchmarks/pools.py [--only idle] [--links 20] [--seconds 60]

Scenarios: `idle` links without traffic, beside one link with an application of its own; `trickle`, 10 records a second for
each of 100 links; `busy`, one link with a backlog among idle ones, beside the same link with an application of its own;
`join`, one more link while the others copy; `aggregate`, eight sources into one cluster, of which one is dead, one has lost
records and one is behind. Appends a row for each to results-pools.md.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measuring import add_row, middle_rate
from pool_aggregate import aggregate
from pool_scene import PARTITIONS, Application, Scene, Traffic, fill, say, topics_of, writing
from strait.embedded.kafka import Cluster
from strait.state.reader import StateReader
from strait.state.report_records import LATENCY_BOUNDS_MS
from support.fixtures.waiting import eventually
from support.links.engine_link import EngineLink
from support.reaper import leave_nothing

RESULTS = Path(__file__).parent / "results-pools.md"
INTRODUCTION = (
    "# Pools\n\nMade by `pools.py`: links that share one Spark application, `local`. Memory is the proportional set size "
    "of all of its processes and CPU their share of a core, without the brokers'. Bounds: 20 idle links 2 GB and 0.15 core; "
    "100 links with 10 records/s each 4 GB, 1 core and p99 10 ms; a busy link in a pool of 20 at least 0.95 of its rate "
    "alone; a link that joins copies within 5 s, and no other pauses for more than 50 ms; of eight sources into one cluster, "
    "each one's loss, lag and reason are told apart."
)
BUSY_TURNS = (False, False, True, True, False)  # the first one warms the brokers up
HEAP_MIB = 1024
WARM_SECONDS = 90.0  # until then the brokers compile their code, and answer late
HEAD = ("scenario", "links", "partitions", "memory", "CPU", "result")


def idle(scene: Scene, count: int) -> None:
    """Links without traffic; before that, one of them by itself."""
    alone, *links = scene.links(count + 1)
    with scene.alone("alone", alone) as application:
        share = scene.share(application)
        record("idle, an application of its own", 1, application, share, f"{count} of these: times {count}")
    with scene.pool("idle", links) as application:
        share = scene.share(application)
        record("idle", count, application, share, "")


def trickle(scene: Scene, count: int) -> None:
    """Ten records a second for each link."""
    links = scene.links(count)
    with scene.pool("trickle", links) as application, writing(scene.source.client_properties, topics_of(links), 10.0):
        time.sleep(WARM_SECONDS)
        before = latency_counts(links)
        share = scene.share(application)
        counts = [after - earlier for after, earlier in zip(latency_counts(links), before, strict=True)]
        result = f"{sum(counts)} records timed, p50 ≤ {bound(counts, 0.5)} ms, p99 ≤ {bound(counts, 0.99)} ms"
        record("trickle", count, application, share, result)


def busy(scene: Scene, count: int) -> None:
    """A backlog of one link, with an application of its own and in the pool, in turns. The link's plan has no topic until
    the application has started, so that no start is measured."""
    records = 3_000_000
    rates: dict[bool, list[float]] = {False: [], True: []}
    for turn, is_pooled in enumerate(BUSY_TURNS):
        link, *others = scene.links(count if is_pooled else 1)
        say("filling the source")
        fill(scene.source, next(iter(link.topics)), records)
        link.publish([])
        name = f"busy-{turn}"
        with scene.pool(name, [link, *others]) if is_pooled else scene.alone(name, link):
            link.publish()
            rate = middle_rate(scene.destination, next(iter(link.topics)), PARTITIONS, records)
        rates[is_pooled] += [rate] if turn else []
        say(f"{'in the pool' if is_pooled else 'alone'}: {rate:,.0f} records/s")
    alone, pooled = median(rates[False]), median(rates[True])
    result = f"{pooled:,.0f} of {alone:,.0f} records/s: {pooled / alone:.2f}, medians of 2"
    add_row(RESULTS, INTRODUCTION, HEAD, ("busy", str(count), str(PARTITIONS), "-", "-", result))


def join(scene: Scene, count: int) -> None:
    """One more link, while the others copy a hundred records a second each."""
    *links, new = scene.links(count + 1)
    fill(scene.source, next(iter(new.topics)), 1000)
    with scene.pool("join", links) as application, Traffic(scene, links, 100.0, watched=3) as traffic:
        time.sleep(WARM_SECONDS)
        traffic.longest()
        time.sleep(5.0)
        usual = traffic.longest()
        began = time.monotonic()
        application.host([*links, new])
        eventually(lambda: new.copied() > 0, what="its first record")
        seconds = time.monotonic() - began
        time.sleep(5.0)
        longest = traffic.longest()
        result = f"first record after {seconds:.1f} s; longest pause of others {longest * 1000:.0f} ms, before {usual * 1000:.0f} ms"
        record("join", count + 1, application, 0.0, result)


def eight_sources(scene: Scene, count: int) -> None:
    """Eight sources into one aggregate."""
    found = aggregate(scene, count)
    row = (
        "aggregate",
        str(count),
        str(found.partitions),
        f"{found.memory_bytes / 1e9:.2f} GB",
        f"{found.share:.2f} core",
    )
    add_row(RESULTS, INTRODUCTION, HEAD, (*row, found.result))


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


SCENARIOS: dict[str, tuple[Callable[[Scene, int], None], int]] = {
    "idle": (idle, 20),
    "trickle": (trickle, 100),
    "busy": (busy, 20),
    "join": (join, 20),
    "aggregate": (eight_sources, 8),
}


def main() -> None:
    leave_nothing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SCENARIOS)
    parser.add_argument("--links", type=int, help="default: 20, in trickle 100")
    parser.add_argument("--seconds", type=float, default=60.0)
    arguments = parser.parse_args()
    for name in [arguments.only] if arguments.only else SCENARIOS:
        run, count = SCENARIOS[name]
        say(f"{name}: starting two clusters")
        with (
            tempfile.TemporaryDirectory() as folder,
            Cluster(Path(folder) / "source", heap_mib=HEAP_MIB, optimized=True) as source,
            Cluster(Path(folder) / "destination", heap_mib=HEAP_MIB, optimized=True) as destination,
        ):
            run(Scene(source, destination, Path(folder), arguments.seconds), arguments.links or count)


if __name__ == "__main__":
    main()
