"""What do filters and changes on the way cost?

    python benchmarks/transforms.py [--only drain] [--records 600000]

Scenarios: `drain`, a topic of JSON records of 250 B is emptied as it is, filtered and masked, filtered without parsing, with a
masked key, and by MirrorMaker 2 without and with a transformation of its own that does what the second does; `map`, what
1 %, 50 % and 99 % of records kept at random leave in the offset map; `day`, how soon a slot has read the map of a day of
100,000 records a second of which every second one is kept; `latency`, 500 records a second; `recovery`, how soon records
arrive again after a worker, and after the driver is killed. Appends a table for each to results-transforms.md.

CPU is that of the copier's own processes, so that other load matters less; rates are of the second half of the records, which
leaves out most of the JVM's compiling.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import cramjam

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from measuring import append_table
from mm2 import mm2
from mm2.copier import running
from strait.config import naming
from strait.embedded import jars
from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin, NewTopic
from strait.state.codec import encode
from strait.state.reader import StateReader
from strait.state.runs import RunsByPartition
from strait.state.schema import OffsetMapping, TopicPolicy
from strait.state.topics import ensure_state_topics
from strait.state.transform import TopicTransform
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.links.links import Link
from support.links.transforming import kill, parts, started
from support.reaper import leave_nothing
from transform_scene import (
    LATENCY_RATE,
    PARTITIONS,
    VALUES,
    Drained,
    Scene,
    drained,
    fill,
    latencies,
    tree_of,
    trickle,
    write_map,
)

RESULTS = Path(__file__).with_name("results-transforms.md")
SMT = Path(__file__).parent / "mm2" / "JsonMask.java"
DAY = 100_000 * 86_400  # records
SCHEMA = "id BIGINT, user STRING, email STRING, country STRING, amount DOUBLE, note STRING"
MASK = TopicTransform(
    json_schema=SCHEMA,
    where="v.country <> 'US'",
    set_fields={"user": "sha2(concat('salt', v.user), 256)", "email": "regexp_replace(v.email, '^[^@]+', '***')"},
)
TRANSFORMS: Mapping[str, TopicTransform | None] = {
    "as it is": None,
    "JSON: filter and mask": MASK,
    "filter on bytes": TopicTransform(where='CAST(value AS STRING) NOT LIKE \'%"country": "US"%\''),
    "key masked": TopicTransform(key="sha2(concat('salt', CAST(key AS STRING)), 256)"),
}


def drain(scene: Scene, records: int) -> list[str]:
    """Empty the topic in each way."""
    found = {}
    for name, transform in TRANSFORMS.items():
        with scene.link(transform, records) as link:
            started(link)
            kept = records if not (transform and transform.where) else kept_of(records)
            found[name] = drained(lambda link=link: tree_of(link), lambda link=link: link.copied(), kept, records)
        say(name, found[name])
    for name, smt in (("MirrorMaker 2, as it is", False), ("MirrorMaker 2, JSON: filter and mask", True)):
        found[name] = by_mm2(scene, records, smt=smt)
        say(name, found[name])
    plain = found["as it is"].per_core
    return [
        f"| {name} | {one.per_core / 1e3:,.0f} | {one.per_core / plain:.3f} | {one.per_second / 1e3:,.0f} | {one.peak_mib:,.0f} |"
        for name, one in found.items()
    ]


def kept_of(records: int) -> int:
    """Records that are not from the US."""
    whole, rest = divmod(records, len(VALUES))
    kept = [b'"country": "US"' not in value for value in VALUES]
    return whole * sum(kept) + sum(kept[:rest])


def by_mm2(scene: Scene, records: int, *, smt: bool) -> Drained:
    topic = scene.topic()
    folder = scene.folder / topic
    folder.mkdir()
    Admin(scene.source.client_properties, "it").create([NewTopic(topic, PARTITIONS, 1)])
    fill(scene.source, topic, records)
    command = mm2.command(folder, scene.source, scene.destination, topic)
    if smt:
        subprocess.run(["javac", "-cp", jars.classpath(), "-d", folder, SMT], check=True)
        settings = folder / "mm2.properties"
        way = "source->destination.transforms"
        settings.write_text(f"{settings.read_text()}{way}=mask\n{way}.mask.type=JsonMask\n")
        argv = [f"{one}{os.pathsep}{folder}" if one == jars.classpath() else one for one in command.argv]
        command = replace(command, argv=tuple(argv))

    def copied() -> int:
        known = Admin(scene.destination.client_properties, "it").observe(command.destination_topic.__eq__).topics
        return sum(ends(scene.destination, command.destination_topic, PARTITIONS)) if known else 0

    with running(command, folder) as copier:
        return drained(copier.tree.members, copied, kept_of(records) if smt else records, records)


def maps(scene: Scene, records: int) -> list[str]:
    """What the map takes after a topic was copied, and what was written to it meanwhile, compressed as it is on the broker."""
    rows = []
    for percent in (1, 50, 99):
        transform = TopicTransform(where=f"pmod(xxhash64(key), 100) < {percent}")
        with scene.link(transform, records) as link:
            started(link)
            reader = StateReader(
                link.destination.client_properties, "destination", link.name, follow=("reports", "map")
            )
            with reader as state:
                state.catch_up(60)
                eventually(lambda state=state: passed(state) >= records, what="all is read", within_seconds=600)
                link.publish(slots=1, stopped=True, policy=TopicPolicy(transform=transform))
                link.until_ended()
                state.catch_up(30)
                runs = [run for some in state.runs.values() for run in some]
            sizes = sum(len(cramjam.zstd.compress(encode(run)[1] or b"")) for run in runs)
            logs = (scene.destination.directory).glob(f"**/{naming.map_topic(link.name)}-0/*.log")
            written = sum(file.stat().st_size for file in logs)
            row = percent, sizes / records, len(runs), written / records, read_ms(runs) * 1e6 / records
            rows.append("| {} % | {:.4f} | {} | {:.4f} | {:.1f} |".format(*row))
        print(rows[-1], flush=True)
    return rows


def read_ms(runs: Sequence[OffsetMapping]) -> float:
    """CPU of a reader of these segments."""
    records, times = [encode(run) for run in runs], 10
    began = time.process_time()
    for _ in range(times):
        read = RunsByPartition(lambda *_: None)
        for offset, (key, value) in enumerate(records):
            read.put(key, value or b"", offset)
        read.decode_all()
    return (time.process_time() - began) / times * 1e3


def day(scene: Scene) -> list[str]:
    """What a slot does before it copies, in a process of its own: it reads the map, and decodes the segments of its partitions."""
    link = scene.topic()
    ensure_state_topics(Admin(scene.destination.client_properties, "it"), link, 1)
    write_map(scene.destination, link, DAY)
    rows = []
    for _ in range(3):
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            rows.append(process.submit(read_map, link, scene.destination.client_properties).result())
    print("\n".join(rows), flush=True)
    return rows


def read_map(link: str, properties: Mapping[str, str]) -> str:
    """Return the row of this process."""
    began = time.monotonic()
    with StateReader(properties, "destination", link, follow=("map",), some_partitions=True) as state:
        state.catch_up(60)
        read = time.monotonic() - began
        segments = sum(map(len, state.runs.values()))
        both = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"| {segments:,} | {read:.1f} | {both - read:.1f} | {both:.1f} | {peak:,.0f} |"


def passed(state: StateReader) -> int:
    """Source offsets that the slots have passed."""
    state.poll(0.2)
    newest = {}
    for report in sorted((one for some in state.reports.values() for one in some), key=lambda one: one.at_ms):
        newest |= {(row.topic, row.partition): row.position for row in report.partitions}
    return sum(newest.values())


def latency(scene: Scene, seconds: float) -> list[str]:
    """From `produce` to a consumer of the copy, in ms, of records that are kept; the first third is not counted."""
    rows = []
    for name in ("as it is", "JSON: filter and mask"):
        with scene.link(TRANSFORMS[name]) as link:
            started(link)
            found = sorted(latencies(link, seconds))
            parts_of = statistics.quantiles(found, n=1000)
            rows.append(
                f"| {name} | {len(found)} | " + " | ".join(f"{parts_of[at - 1]:.1f}" for at in (500, 900, 990)) + " |"
            )
        print(rows[-1], flush=True)
    return rows


def recovery(scene: Scene, kills: int) -> list[str]:
    """Seconds until a record arrives that was written after the kill."""
    rows = []
    for name in ("as it is", "JSON: filter and mask"):
        with scene.link(TRANSFORMS[name]) as link:
            started(link)
            stop = threading.Event()
            writer = threading.Thread(target=trickle, args=(link, stop))
            writer.start()
            try:
                link.until(lambda link=link: link.copied() > 1_000, "it copies")
                for what, names in (("worker", ("slot",)), ("driver", ("driver", "jvm"))):
                    took = [after_kill(link, names) for _ in range(kills)]
                    rows.append(f"| {name} | {what} | {kills} | {statistics.median(took):.1f} | {max(took):.1f} |")
                    print(rows[-1], flush=True)
            finally:
                stop.set()
                writer.join()
    return rows


def after_kill(link: Link, names: Sequence[str]) -> float:
    eventually(lambda: parts(link)["slot"], what="a slot runs")
    began = time.monotonic()
    kill([process for name in names for process in parts(link)[name]])
    before = link.copied()
    while link.copied() <= before + LATENCY_RATE // 10:
        started(link)
        time.sleep(0.05)
    took = time.monotonic() - began
    time.sleep(5.0)
    return took


def say(name: str, one: Drained) -> None:
    print(
        f"{name}: {one.per_core:,.0f} per core, {one.per_second:,.0f} per second, {one.peak_mib:,.0f} MiB", flush=True
    )


HEADS = {
    "drain": ("how", "1,000 source records/s per core", "of as it is", "1,000 source records/s", "MiB at most"),
    "map": (
        "kept",
        "B per source record in the map",
        "segments",
        "B per source record written to it",
        "ms CPU to read the map, for a million of source records",
    ),
    "day": ("segments", "s to read them", "s to decode them", "s together", "MiB at most"),
    "latency": ("how", "records", "p50 ms", "p90 ms", "p99 ms"),
    "recovery": ("how", "killed", "times", "median s", "longest s"),
}


def main() -> None:
    leave_nothing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(HEADS))
    parser.add_argument("--records", type=int, default=600_000)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--no-record", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Cluster(folder / "a") as source, Cluster(folder / "b") as destination:
            scene = Scene(folder, source, destination)
            scenarios: Mapping[str, Callable[[], list[str]]] = {
                "drain": lambda: drain(scene, arguments.records),
                "map": lambda: maps(scene, arguments.records),
                "day": lambda: day(scene),
                "latency": lambda: latency(scene, arguments.seconds),
                "recovery": lambda: recovery(scene, arguments.kills),
            }
            for scenario in [arguments.only] if arguments.only else list(HEADS):
                rows = scenarios[scenario]()
                size = f"{DAY if scenario == 'day' else arguments.records:,} records"
                load = f"{size}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}"
                if not arguments.no_record:
                    append_table(RESULTS, f"{scenario}: {load}", HEADS[scenario], rows)


if __name__ == "__main__":
    main()
