"""One partition gets ten records a second beside thousands that are idle: what its records wait for, and what the idle
ones cost."""

import time
from pathlib import Path
from typing import NamedTuple

from endurance.brokers import running
from endurance.processes import cpu_seconds, memory_mb, share_of_core
from endurance.rig_link import RigLink
from endurance.scenario import Finding, Say, Sizes
from endurance.trickle_source import latency
from mm2.latency import LatencyFigures
from strait.embedded.kafka import Cluster
from support.links.far import FarCluster
from support.proxy.proxy import FETCH

_MOST_ADDED_MS = 2.0
_MOST_IDLE_PERCENT = 3.0
_MOST_REQUEST_BYTES = 200.0
_SETTLE_SECONDS = 5.0
_WARM_UP_SECONDS = 3.0  # a producer's first records wait for what it asks the brokers before
_HEAP_MIB = 1024


def trickle(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    source, destination = (Cluster(folder / side, heap_mib=_HEAP_MIB) for side in ("source", "destination"))
    with running(source, destination):
        alone = RigLink("alone", source, destination, folder, {"alone": 1})
        among = RigLink("among", source, destination, folder, sizes.topics("among"), slot_memory_bytes=128 << 20)
        for link in (alone, among):
            link.begin()
        try:
            one, many = (_observe(link, sizes, say) for link in (alone, among))
        finally:
            alone.stop()
            among.stop()
    return [
        Finding("p50, one partition alone", one.latency.p50_ms, "ms"),
        Finding("p99, one partition alone", one.latency.p99_ms, "ms"),
        Finding("p50, among all", many.latency.p50_ms, "ms"),
        Finding("p99, among all", many.latency.p99_ms, "ms"),
        Finding("p99, added", many.latency.p99_ms - one.latency.p99_ms, "ms", _MOST_ADDED_MS),
        Finding("CPU of the slot for a record, one partition alone", one.ms_per_record, "ms"),
        Finding("CPU of the slot for a record, among all", many.ms_per_record, "ms"),
        Finding("idle, CPU of the slot", many.idle_percent, "% of a core", _MOST_IDLE_PERCENT),
        Finding("slot, memory", many.memory_mb, "MB"),
    ]


class _Observed(NamedTuple):
    """``ms_per_record``: CPU, beyond what it uses while idle."""

    latency: LatencyFigures
    ms_per_record: float
    idle_percent: float
    memory_mb: float


def _observe(link: RigLink, sizes: Sizes, say: Say) -> _Observed:
    slot = link.run_slot()
    link.seconds_until(time.monotonic(), lambda row: row.state == "caught_up")
    time.sleep(_SETTLE_SECONDS)  # let what the start left over pass
    idle_percent = share_of_core(slot, sizes.seconds)
    before, began = cpu_seconds(slot), time.monotonic()
    figures = latency(link, sizes.seconds, warm_up_seconds=_WARM_UP_SECONDS)
    idle_seconds = (time.monotonic() - began) * idle_percent / 100
    used = cpu_seconds(slot) - before - idle_seconds
    found = _Observed(figures, 1000 * used / figures.records, idle_percent, memory_mb(slot))
    say(f"{link.name}: {found}")
    link.stop()
    return found


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
