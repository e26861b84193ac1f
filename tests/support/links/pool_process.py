"""``python -m support.links.pool_process SPEC TASK POISONED``: one task of a pool, until its parent is gone. Whatever is
fetched of the topic POISONED makes its slot fail as a defect would; "": of none."""

import os
import sys
from pathlib import Path
from typing import Any

from strait.engine.batch_stamper import BatchStamper
from strait.engine.pool_task import run_task


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
    run_task(Path(sys.argv[1]), int(sys.argv[2]), f"pool {os.getpid()}", lambda: os.getppid() != parent)
