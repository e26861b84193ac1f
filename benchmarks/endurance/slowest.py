"""What the slowest records waited for: pauses of the brokers' JVMs, and moments in which a process got no CPU."""

import re
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from endurance.paced import Arrival

_NS = 1_000_000_000
_NAP_SECONDS = 0.0005
_GAP_NS = 2_000_000
_SAFEPOINT = re.compile(r'^\[(\d+)ns\].*Safepoint "(\w+)".*Total: +(\d+) ns')
LOGGED = "-Xlog:safepoint:file={file}:timenanos"
"""A JVM's option. Its clock is the monotonic one of this machine."""


class Pause(NamedTuple):
    """From one moment to another, in ns of the monotonic clock."""

    began: int
    ended: int
    why: str


def pauses_of_jvm(log: Path, name: str) -> Iterator[Pause]:
    """Of those that its log has."""
    for line in log.read_text(encoding="utf-8").splitlines():
        if found := _SAFEPOINT.match(line):
            ended, why, total = int(found[1]), found[2], int(found[3])
            kind = "a collection of" if "Collect" in why or "GC" in why else "a safepoint of"
            yield Pause(ended - total, ended, f"{kind} the {name}'s JVM")


@contextmanager
def without_cpu() -> Iterator[list[Pause]]:
    """Note when this process got no CPU although it wanted some."""
    found, over = list[Pause](), threading.Event()

    def watch() -> None:
        before = time.monotonic_ns()
        while not over.is_set():
            time.sleep(_NAP_SECONDS)
            now = time.monotonic_ns()
            if now - before > _GAP_NS:
                found.append(Pause(before, now, "no CPU for a process beside them"))
            before = now

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


def held_up_by(slow: Sequence[Arrival], pauses: Sequence[Pause]) -> Counter[str]:
    """Count the records by the longest pause while each was under way that took at least a third of its time."""
    found: Counter[str] = Counter()
    for record in slow:
        shared = ((min(one.ended, record.arrived) - max(one.began, record.sent), one.why) for one in pauses)
        length, why = max(shared, default=(0, ""))
        found[why if 3 * length >= record.took else "neither"] += 1
    return found
