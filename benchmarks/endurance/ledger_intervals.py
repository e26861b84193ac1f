"""Whether the ledger can be felt: latency through the real application, with a row each few seconds and without."""

import os
import signal
import subprocess
import time
from pathlib import Path

from endurance.brokers import running
from endurance.processes import STRAIT
from endurance.rig_link import RigLink
from endurance.scenario import Finding, Say, Sizes
from endurance.trickle_source import latency
from mm2.latency import LatencyFigures
from strait.embedded.kafka import Cluster

_OFTEN_SECONDS, _NEVER_SECONDS = 10, 86_400
_MOST_TIMES = 1.5
_MOST_ADDED_MS = 5.0
_END_SECONDS = 60.0
_PER_SECOND = 100


def ledger(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    source, destination = Cluster(folder / "source"), Cluster(folder / "destination")
    found = {}
    with running(source, destination):
        for name, seconds in (("never", _NEVER_SECONDS), ("often", _OFTEN_SECONDS)):
            link = RigLink(name, source, destination, folder, {name: 1}, more={"ledger_seconds": seconds})
            found[name] = _observe(link, sizes)
            say(f"ledger_seconds {seconds}: {found[name]}")
    never, often = found["never"], found["often"]
    return [
        Finding("p50 without rows", never.p50_ms, "ms"),
        Finding(f"p50, a row each {_OFTEN_SECONDS} s", often.p50_ms, "ms"),
        Finding("p99.9 without rows", never.p999_ms, "ms"),
        Finding(f"p99.9, a row each {_OFTEN_SECONDS} s", often.p999_ms, "ms", never.p999_ms * _MOST_TIMES + _MOST_ADDED_MS),
        Finding("slowest record without rows", never.max_ms, "ms"),
        Finding(f"slowest record, a row each {_OFTEN_SECONDS} s", often.max_ms, "ms"),
    ]  # fmt: skip


def _observe(link: RigLink, sizes: Sizes) -> LatencyFigures:
    link.begin()
    environment = os.environ | {"STRAIT_HOME": str(link.folder / "home")}
    command = [*STRAIT, "run", "--config", str(link.links_file), "--link", link.name]
    with (link.folder / f"{link.name}.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        began = time.monotonic()
        link.seconds_until_first_record(began)
        return latency(link, sizes.seconds, per_second=_PER_SECOND)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_END_SECONDS)
