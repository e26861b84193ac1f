"""Whether the ledger can be felt, and what the slowest records wait for: latency through two real applications by turns, one
with a row of the ledger each few seconds, and without any copier."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from endurance.brokers import running
from endurance.paced import Arrival, arrivals
from endurance.processes import STRAIT
from endurance.rig_link import RigLink
from endurance.scenario import Finding, Say, Sizes
from endurance.slowest import LOGGED, held_up_by, pauses_of_jvm, without_cpu
from mm2.latency import percentiles
from strait.embedded.kafka import Cluster
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends

_OFTEN_SECONDS, _NEVER_SECONDS = 10, 86_400
_MOST_TIMES = 1.5
_MOST_ADDED_MS = 5.0
_END_SECONDS = 60.0
_PER_SECOND = 1_000
_HEAP_MIB = 1024
_SLOWEST = 1000  # one of so many
_FLOOR, _NEVER, _OFTEN = "no copier", "without rows", f"a row each {_OFTEN_SECONDS} s"


def ledger(sizes: Sizes, folder: Path, say: Say) -> list[Finding]:
    logs = {side: folder / f"{side}-safepoints.log" for side in ("source", "destination")}
    source, destination = (
        Cluster(folder / side, heap_mib=_HEAP_MIB, optimized=True, jvm_options=[LOGGED.format(file=log)])
        for side, log in logs.items()
    )
    found: dict[str, list[Arrival]] = {_FLOOR: [], _NEVER: [], _OFTEN: []}
    with running(source, destination), ExitStack() as stack:
        topics = {_FLOOR: "never", _NEVER: "never", _OFTEN: "often"}
        for name, seconds in ((_NEVER, _NEVER_SECONDS), (_OFTEN, _OFTEN_SECONDS)):
            link = RigLink(
                topics[name], source, destination, folder, {topics[name]: 1}, more={"ledger_seconds": seconds}
            )
            stack.enter_context(_application(link))
        without = stack.enter_context(without_cpu())
        for turn in range(-1, sizes.turns):
            for name, measured in found.items():
                to = source if name == _FLOOR else destination
                end = (source.client_properties, to.client_properties, topics[name], _PER_SECOND)
                arrived = arrivals(*end, sizes.seconds if turn >= 0 else min(20.0, sizes.seconds))
                say(f"turn {turn}, {name}: {percentiles(one.took for one in arrived)}")
                measured += arrived if turn >= 0 else []  # brokers compile their code in the first one
        pauses = [*without, *(one for side, log in logs.items() for one in pauses_of_jvm(log, side))]
    figures = {name: percentiles(one.took for one in measured) for name, measured in found.items()}
    most = figures[_NEVER].p999_ms * _MOST_TIMES + _MOST_ADDED_MS
    rows = [Finding("records of each", figures[_NEVER].records, "records")]
    for name, one in figures.items():
        rows.append(Finding(f"p50, {name}", one.p50_ms, "ms"))
        rows.append(Finding(f"p99, {name}", one.p99_ms, "ms"))
        rows.append(Finding(f"p99.9, {name}", one.p999_ms, "ms", most if name == _OFTEN else None))
        rows.append(Finding(f"slowest, {name}", one.max_ms, "ms"))
        slow = sorted(found[name], key=lambda it: it.took)[-(len(found[name]) // _SLOWEST) :]
        for why, count in held_up_by(slow, pauses).most_common():
            rows.append(Finding(f"of the slowest {len(slow)}, {name}, held up by {why}", count, ""))
    return rows


@contextmanager
def _application(link: RigLink) -> Iterator[None]:
    """Run the link as a user does; the block begins once it copies."""
    link.begin()
    environment = os.environ | {"STRAIT_HOME": str(link.folder / f"home-{link.name}")}
    command = [*STRAIT, "run", "--config", str(link.links_file), "--link", link.name]
    with (link.folder / f"{link.name}.log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        link.write(tag="first")
        eventually(lambda: ends(link.destination, link.name, 1)[0] > 0, what=lambda: f"it copies: {link.log()}")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(_END_SECONDS)
