"""One partition gets ten records a second beside thousands that are idle: what its records wait for, and what the idle
ones cost."""

import time
from pathlib import Path

from endurance.processes import memory_mb, share_of_core
from endurance.rig_link import RigLink
from endurance.scenario import Finding, Say, Sizes
from endurance.trickle_source import latency
from strait.embedded.kafka import Cluster
from support.fixtures.clusters import running
from support.links.far import FarCluster
from support.proxy.proxy import FETCH

_MOST_ADDED_MS = 2.0
_MOST_IDLE_PERCENT = 3.0
_MOST_REQUEST_BYTES = 200.0
_SETTLE_SECONDS = 5.0
_HEAP_MIB = 1024


def trickle(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    source, destination = (Cluster(folder / side, heap_mib=_HEAP_MIB) for side in ("source", "destination"))
    with running(source, destination):
        alone = RigLink("alone", source, destination, folder, {"alone": 1})
        among = RigLink("among", source, destination, folder, sizes.topics("among"), slot_memory_bytes=128 << 20)
        for link in (alone, among):
            link.begin()
        try:
            (of_one, _, _), (of_many, idle, memory) = (_observe(link, sizes, say) for link in (alone, among))
        finally:
            alone.stop()
            among.stop()
    return [
        Finding("p50, one partition alone", of_one[0], "ms"),
        Finding("p99, one partition alone", of_one[1], "ms"),
        Finding("p50, among all", of_many[0], "ms"),
        Finding("p99, among all", of_many[1], "ms"),
        Finding("p99, added", of_many[1] - of_one[1], "ms", _MOST_ADDED_MS),
        Finding("idle, CPU of the slot", idle, "% of a core", _MOST_IDLE_PERCENT),
        Finding("slot, memory", memory, "MB"),
    ]


def _observe(link: RigLink, sizes: Sizes, say: Say) -> tuple[tuple[float, float], float, float]:
    """Latency (p50, p99), percent of a core while idle, memory."""
    slot = link.run_slot()
    link.seconds_until(time.monotonic(), lambda row: row.state == "caught_up")
    time.sleep(_SETTLE_SECONDS)  # let what the start left over pass
    idle = share_of_core(slot, sizes.seconds)
    figures = latency(link, sizes.seconds)
    say(f"{link.name}: idle {idle:.1f} % of a core; {figures}")
    memory = memory_mb(slot)
    link.stop()
    return (figures.p50_ms, figures.p99_ms), idle, memory


def fetched(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    """The same by size, which no clock has a part in: what a round asks the source for."""
    source, destination = FarCluster(folder / "source", heap_mib=_HEAP_MIB), Cluster(folder / "destination")
    with running(source, destination), source.proxy as proxy:
        link = RigLink("fetched", source, destination, folder, sizes.topics("fetched"))
        link.begin()
        link.run_slot()
        try:
            link.seconds_until(time.monotonic(), lambda row: row.state == "caught_up")
            before = proxy.passed("request", FETCH)
            latency(link, sizes.seconds, warm_up_seconds=0.0)
            after = proxy.passed("request", FETCH)
        finally:
            link.stop()
    rounds = after.frames - before.frames
    say(f"{rounds} rounds")
    return [
        Finding("rounds while one partition trickles", rounds, "", 1, at_least=True),
        Finding("fetch request, mean", (after.bytes - before.bytes) / max(1, rounds), "bytes", _MOST_REQUEST_BYTES),
    ]
