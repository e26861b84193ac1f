"""Clusters of a scenario, watched: a broker that ends by itself ends the scenario, with what it said last."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from strait.embedded.kafka import Cluster
from strait.errors import MeasurementError
from support.fixtures import clusters as fixture

_LOOK_SECONDS = 1.0
_LINES = 15
_SIGNAL = signal.SIGUSR1


@contextmanager
def running(*clusters: Cluster) -> Iterator[None]:
    """Run the clusters as long as the block lasts. Used in the main thread.

    Raises:
        MeasurementError: meanwhile, a broker has ended that nobody had stopped or killed.
    """
    with fixture.running(*clusters), watched(*clusters):
        yield


@contextmanager
def watched(*clusters: Cluster) -> Iterator[None]:
    """Watch clusters that run, as `running` does."""
    over, ended, ends = threading.Event(), list[str](), Ends(*clusters)

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            if text := ends.look():
                ended.append(text)
                signal.pthread_kill(threading.main_thread().ident or 0, _SIGNAL)  # it may be waiting for the broker
                return

    def stop(*_: object) -> NoReturn:
        raise MeasurementError(ended[0])

    before = signal.signal(_SIGNAL, stop)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        signal.signal(_SIGNAL, before)


class Ends:
    """Brokers that do not run though nobody ended them. Whoever stops one needs a moment until its record is gone, so two
    looks count."""

    def __init__(self, *clusters: Cluster) -> None:
        self._brokers = [(cluster, broker) for cluster in clusters for broker in cluster.broker_ids]
        self._pids = [cluster.pid(broker) for cluster, broker in self._brokers]
        self._missing: dict[int, str] = {}

    def look(self) -> str:
        """Return what is to be said of the first one; "" if there is none."""
        for at, (cluster, broker) in enumerate(self._brokers):
            pid, folder = cluster.pid(broker), cluster.log(broker).parent
            if pid is not None or not (folder / "process.json").exists():
                self._pids[at] = pid
                self._missing.pop(at, None)
            elif at in self._missing:
                return (
                    f"broker {broker} in {cluster.directory} has ended by itself: {self._missing[at]}\n{_tail(folder)}"
                )
            else:
                self._missing[at] = _how(self._pids[at])
        return ""


def _how(pid: int | None) -> str:
    """How a child of this process has ended, unless somebody else asked before."""
    try:
        found = None if pid is None else os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        found = None
    if found is None:
        return "how is not known"
    return f"exit code {found.si_status}" if found.si_code == os.CLD_EXITED else f"signal {found.si_status}"


def _tail(folder: Path) -> str:
    """The ends of what its JVM and its log said."""
    found = []
    for file in (folder / "jvm.out", folder / "server.log"):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.exists() else []
        found += [f"{file.name}:", *(f"  {line[:400]}" for line in lines[-_LINES:])]
    return "\n".join(found)
