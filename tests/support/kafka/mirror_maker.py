"""MirrorMaker 2 itself, as its own distribution runs it, for as long as a test wants it."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mm2.mm2 import command
from strait.embedded.kafka import Cluster

OFFSETS_TOPIC = "mm2-offsets.source.internal"
_QUICKLY = {
    "offset.flush.interval.ms": 2000,
    "scheduled.rebalance.max.delay.ms": 0,  # a worker that was killed is not waited for
    "tasks.max": 1,
}


class MirrorMaker:
    """A worker that runs. It stores its positions every two seconds."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    def require_alive(self) -> bool:
        assert self._process.poll() is None, self._log.read_text("utf-8", "replace")[-3000:]
        return True

    def kill(self) -> None:
        """As a machine that loses its power."""
        self._process.kill()
        self._process.wait(30)

    def end(self) -> None:
        """In order, as long as that takes."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)


@contextmanager
def mirror_maker(folder: Path, source: Cluster, destination: Cluster, topic: str) -> Iterator[MirrorMaker]:
    """Copies ``topic`` into ``source.<topic>``."""
    folder.mkdir()
    started = command(folder, source, destination, topic)
    with (folder / "mm2.properties").open("a", encoding="utf-8") as settings:
        settings.writelines(f"{key}={value}\n" for key, value in _QUICKLY.items())
    with (folder / "mm2.out").open("ab") as output:
        process = subprocess.Popen(
            started.argv, cwd=folder, stdout=output, stderr=subprocess.STDOUT, env=dict(os.environ)
        )
    try:
        yield MirrorMaker(process, started.log)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(30)
