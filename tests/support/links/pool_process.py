"""``python -m support.links.pool_process SPEC TASK POISONED``: one task of a pool, or slot of a link, until its parent is
gone or asks it to end. Whatever is fetched of the topic POISONED makes its slot fail as a defect would; "": of none."""

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from strait.config.app_spec import read_spec
from strait.engine import task
from strait.engine.batch_stamper import BatchStamper


def poison(topic: str) -> None:
    """Have a defect meet what is fetched of this topic."""
    right = BatchStamper.take

    def take(self: BatchStamper, partition: Any, *rest: Any, **more: Any) -> bool:
        if partition.topic == topic:
            raise ValueError("poisoned")
        return right(self, partition, *rest, **more)

    BatchStamper.take = take  # type: ignore[method-assign]


if __name__ == "__main__":
    parent = os.getppid()
    if sys.argv[3]:
        poison(sys.argv[3])
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    path = Path(sys.argv[1])
    application = f"pool {os.getpid()}"
    task.run(read_spec(path), path, int(sys.argv[2]), application, lambda: asked.is_set() or os.getppid() != parent)
