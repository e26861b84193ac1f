"""Thousands of partitions whose source is far away go on after kill -9."""

import time
from pathlib import Path

from endurance.brokers import running
from endurance.rig_link import RigLink
from endurance.scenario import Finding, Say, Sizes
from strait.embedded.kafka import Cluster
from support.links.far import FarCluster

_MOST_SECONDS = 10.0
_HEAP_MIB = 1024


def far(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    source = FarCluster(folder / "source", heap_mib=_HEAP_MIB)
    destination = Cluster(folder / "destination", heap_mib=_HEAP_MIB)
    with running(source, destination), source.proxy as proxy:
        link = RigLink("far", source, destination, folder, sizes.topics("far"), slot_memory_bytes=128 << 20)
        link.begin()
        link.write(tag="first")  # nothing is verified of what was never copied
        slot, began = link.run_slot(), time.monotonic()
        near = link.seconds_until_copied(began)
        say(f"all copied {near:.1f} s after the start, without a way")
        proxy.delay(sizes.round_trip_ms / 1000)
        slot.kill()
        link.write(tag="second")
        began, slot = time.monotonic(), link.run_slot()
        try:
            away = link.seconds_until_copied(began)
        finally:
            link.stop()
        say(f"all copied {away:.1f} s after kill -9")
    return [
        Finding("all copied after the first start, without a way", near, "s"),
        Finding("all copied after kill -9", away, "s", _MOST_SECONDS),
    ]
