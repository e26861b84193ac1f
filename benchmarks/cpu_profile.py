"""Where does the CPU of a copied GB go?

Strait, as a user runs it (`strait run`, two slots inside Spark), empties a full topic; `perf` looks 997 times a second
what its slots are doing. Each look counts for the innermost thing that has a name here: a copy into the kernel, a page
fault, the checksum, the interpreter. The bare relay of `make bench` runs before it, for comparison.

    python benchmarks/cpu_profile.py [--workload 1kib-lz4] [--scale 1.0]

Appends a table to profile.md. Needs Linux's perf and the right to use it (root, or kernel.perf_event_paranoid at -1 and
kernel.kptr_restrict at 0). Others on the machine make every copy dearer, since they take the caches: compare shares.
"""

import argparse
import datetime
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from mm2 import load, strait_runner
from mm2.copier import Running, running
from mm2.drain import watch
from mm2.machine import commit
from mm2.relay import measure_relay
from mm2.topics import Topics
from mm2.workloads import Drain, choose
from strait.embedded.kafka import Cluster
from support.reaper import leave_nothing

RESULTS = Path(__file__).parent / "profile.md"
HEAD = """# Where the CPU of a copied GB goes

Appended by `cpu_profile.py`, which says how it is measured, and by nobody else. CPU of the two slots alone, from the first
arrival at the destination to the last, so the start of the slower slot is in it.
"""
LOOKS_PER_SECOND = 997
FIRST_ARRIVAL_SECONDS = 120.0
RELAY_BYTES = 4 * 10**9
OTHER = "everything else"

# Of two that fit the first counts: the frames of a look are searched for any of the words, the innermost for `leaf`.
KINDS: tuple[tuple[str, str, str], ...] = (
    ("page faults: first use of memory", "page_fault", ""),
    ("send: copying into the kernel", "sys_sendmsg", "_copy_from_iter"),
    ("send: TCP, down to the broker's socket", "sys_sendmsg", ""),
    ("receive: copying out of the kernel", "sys_recvfrom", "_copy_to_iter"),
    ("receive: TCP", "sys_recvfrom", ""),
    ("wake-ups: epoll", "epoll|do_sys_poll", ""),
    ("plan, map and reports: librdkafka", "rdkafka|cimpl", ""),
    ("CRC-32C", "", "crc32c"),
    ("garbage collection", "gc_collect", ""),
    ("Python", "", "libpython|/python3"),
)


@dataclass(frozen=True)
class Profile:
    """What the slots did."""

    gb: float
    cpu_seconds: float
    shares: dict[str, float]


def kind(frames: list[str]) -> str:
    """What a look at a stack, innermost frame first, counts for."""
    stack = "\n".join(frames)
    for name, anywhere, leaf in KINDS:
        if re.search(anywhere, stack) and re.search(leaf, frames[0]):
            return name
    return OTHER


def shares(script: Iterable[str]) -> dict[str, float]:
    """Of each kind, from the lines of `perf script`: a heading, the frames, an empty line."""
    counted: Counter[str] = Counter()
    frames: list[str] = []
    for line in (*script, ""):
        if line.strip():
            frames.append(line.strip())
        elif len(frames) > 1:
            counted[kind(frames[1:])] += 1
            frames = []
        else:
            frames = []
    return {name: count / counted.total() for name, count in counted.most_common()}


@contextmanager
def recorded(data: Path) -> Iterator[None]:
    """Look at the whole machine meanwhile: who is a slot is known later."""
    command = ["perf", "record", "-q", "-a", "-g", "-F", str(LOOKS_PER_SECOND), "-o", str(data)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as perf:
        try:
            yield
        finally:
            perf.send_signal(signal.SIGINT)
            said = perf.communicate(timeout=60)[1]
    if not data.exists():
        raise SystemExit(f"perf recorded nothing: {said.strip()}")


def slots_of(copier: Running) -> dict[int, float]:
    """CPU seconds so far of each process that holds data."""
    found = {}
    for process in copier.tree.members():
        try:
            if re.search(copier.command.slot_commands, " ".join(process.cmdline())):
                times = process.cpu_times()
                found[process.pid] = times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return found


def profile(source: Cluster, destination: Cluster, folder: Path, workload: Drain) -> Profile:
    """Fill, copy, look."""
    topics = Topics("source", source.client_properties)
    copies = Topics("destination", destination.client_properties)
    topics.create(workload.name)
    load.fill(source.client_properties, workload.name, workload, lambda _: None)
    loaded = load.read_batches(source.directory, workload.name)
    load.check(loaded, workload)
    command = strait_runner.command(folder, source, destination, workload.name)
    copies.create(command.destination_topic)
    os.sync()

    def count() -> int:
        return copies.count(command.destination_topic)

    with running(command, folder) as copier:
        deadline = time.monotonic() + FIRST_ARRIVAL_SECONDS
        while not (first := count()):
            copier.require_alive()
            if time.monotonic() > deadline:
                raise SystemExit(f"nothing was copied: {copier.last_words()}")
            time.sleep(0.05)
        before = slots_of(copier)
        with recorded(folder / "perf.data"):
            watch(copier, count, loaded.records, [], lambda _: None)
        after = slots_of(copier)
    pids = ",".join(map(str, before.keys() & after.keys()))
    script = subprocess.run(
        ["perf", "script", "-i", folder / "perf.data", "--pid", pids, "-F", "pid,ip,sym,dso"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    ).stdout
    cpu_seconds = sum(after[pid] - before[pid] for pid in before.keys() & after.keys())
    return Profile(loaded.bytes * (1 - first / loaded.records) / 1e9, cpu_seconds, shares(script.splitlines()))


def section(found: Profile, workload: Drain, relay: float) -> str:
    """The run as text for profile.md."""
    per_gb = found.cpu_seconds / found.gb
    rows = [(name, f"{share:.1%}", f"{share * per_gb:.3f}") for name, share in found.shares.items()]
    rows += [("**all**", "100%", f"**{per_gb:.2f}**"), ("the bare relay, for comparison", "", f"{relay:.2f}")]
    return (
        f"\n## {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} · {commit()}\n\n"
        f"{workload.description}, {found.gb:.2f} GB, {os.cpu_count()} cores, "
        f"load average {os.getloadavg()[0]:.1f}, {found.cpu_seconds:.2f} CPU-seconds.\n\n"
        "| what the slots do | share | CPU-s/GB |\n| --- | --: | --: |\n"
        + "".join(f"| {' | '.join(row)} |\n" for row in rows)
    )


def main() -> None:
    leave_nothing()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", default="1kib-lz4")
    parser.add_argument("--scale", type=float, default=1.0)
    asked = parser.parse_args()
    workload = choose([asked.workload])[0].scaled(asked.scale)
    if not isinstance(workload, Drain):
        sys.exit(f"{workload.name} is not drained")
    if shutil.which("perf") is None:
        sys.exit("there is no perf on this machine; Debian has it in the package linux-perf")
    relay = measure_relay(RELAY_BYTES)
    with (
        tempfile.TemporaryDirectory(prefix="strait-profile-") as name,
        Cluster(Path(name) / "source", heap_mib=1024, optimized=True) as source,
        Cluster(Path(name) / "destination", heap_mib=1024, optimized=True) as destination,
    ):
        found = profile(source, destination, Path(name), workload)
    text = section(found, workload, relay.cpu_seconds_per_gb)
    if not RESULTS.exists():
        RESULTS.write_text(HEAD, encoding="utf-8")
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(text)
    print(text)


if __name__ == "__main__":
    main()
