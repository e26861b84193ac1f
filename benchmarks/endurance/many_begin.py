"""Very many partitions begin, are copied, and survive that every slot is killed at once."""

import math
import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from endurance.brokers import running
from endurance.comparing import compare
from endurance.processes import memory_mb
from endurance.rig_link import RigLink
from endurance.scenario import Finding, Say, Sizes
from strait.embedded.kafka import Cluster
from support.fixtures.waiting import eventually
from support.kafka.log_ends import LogEnds

_MOST_SECONDS_TO_COPY_ALL = 30.0
_HEAP_MIB = 1536
_PROPERTIES = {"log.index.size.max.bytes": "65536"}  # the default maps 20 MB into memory for each partition
_PATIENCE_SECONDS = 600.0
_OTHER_FILES = 600  # libraries, connections, further topics


def begin(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    brokers = _brokers(sizes.partitions)
    if brokers > 1:
        say(f"{brokers} brokers for each cluster, since a process may open {_files():,} files here")
    source, destination = (
        Cluster(folder / side, brokers, _PROPERTIES, _HEAP_MIB // brokers) for side in ("source", "destination")
    )
    with running(source, destination):
        topics = sizes.topics("begin")
        link = RigLink("begin", source, destination, folder, topics, slots=sizes.slots, slot_memory_bytes=128 << 20)
        applied = link.begin()
        made = sum(topic.partitions for topic in link.observe_destination().values())
        seconds = sum(run.seconds for run in applied)
        say(f"applied in {seconds:.1f} s, {len(applied)} runs; {made} partitions on the destination")
        for run in applied[:-1]:
            say(run.output.rstrip().rpartition("\n")[2])
        written = link.write(tag="first")
        say(f"{written} records written")
        try:
            return [
                Finding("brokers of each cluster", brokers, ""),
                Finding("apply", seconds, "s"),
                Finding("apply, CPU", sum(run.cpu_seconds for run in applied), "s"),
                Finding("apply, runs until it succeeded", len(applied), ""),
                Finding("partitions made on the destination", made, "", sizes.partitions, at_least=True),
                *(_copy(link, sizes, say) if made >= sizes.partitions else []),
            ]
        finally:
            link.stop()


def _write_until(killed: threading.Event, link: RigLink) -> int:
    """A record into each partition, and again until then; how many in all."""
    written = turn = 0
    while not turn or not killed.is_set():
        written += link.write(tag=f"second, {turn}")
        turn += 1
    return written


def _brokers(partitions: int) -> int:
    """As few as can open a file for each partition."""
    return math.ceil(partitions / (_files() - _OTHER_FILES))


def _files() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def _copy(link: RigLink, sizes: Sizes, say: Say) -> list[Finding]:
    began = time.monotonic()
    slots = [link.run_slot(slot) for slot in range(sizes.slots)]
    first = link.seconds_until_copied(began)
    say(f"all copied {first:.1f} s after the start")
    with ThreadPoolExecutor(1) as beside, closing(LogEnds(link.destination, {next(iter(link.topics)): 1})) as ends:
        (before,), killed = ends.now(), threading.Event()
        writing = beside.submit(_write_until, killed, link)
        try:
            eventually(lambda: ends.now()[0] > before, what=link.log, within_seconds=_PATIENCE_SECONDS)
            for slot in slots:
                slot.kill()
        finally:
            killed.set()
    more = writing.result()
    say(f"{more} more records written; slots were killed meanwhile")
    began = time.monotonic()
    again = [link.run_slot(slot) for slot in range(sizes.slots)]
    second = link.seconds_until_copied(began)
    say(f"all copied {second:.1f} s after the second start")
    found = compare(link.source, link.destination, link.topics)
    return [
        Finding("all copying after the start", first, "s", _MOST_SECONDS_TO_COPY_ALL),
        Finding("all copying after kill -9", second, "s", _MOST_SECONDS_TO_COPY_ALL),
        Finding("records written while slots were killed", more, "records"),
        Finding("records", found.records, "records"),
        Finding("records lost", found.lost, "records", 0),
        Finding("records twice", found.twice, "records", 0),
        Finding("partitions in another order", found.disordered, "", 0),
        Finding("slots, memory", max(map(memory_mb, again)), "MB"),
    ]
