"""The part of an audit that runs in Spark's Python workers: it imports hardly more than it needs."""

import json
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from strait.audit.chunks import Chunk
from strait.audit.task import Auditor, TaskSettings, failed
from strait.audit.task_result import ChunkResult
from strait.config.app_spec import AppSpec
from strait.config.audit import NICENESS


def compare_chunks(spec_path: str, settings: str, chunks: Iterator[Chunk]) -> Iterator[ChunkResult]:
    """Compare chunks. ``settings``: as JSON, all settings of a task that are not in the spec, which has the secrets.

    Any error is the result of its chunk: Spark would run the task again without limit.
    """
    for chunk in chunks:
        try:
            yield _auditor(spec_path, settings).compare(chunk)
        except Exception as error:  # noqa: BLE001
            yield failed(chunk, f"{type(error).__name__}: {error}")


def give_way() -> None:
    """Lower this process's priority for CPU to that of an audit."""
    os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))


@lru_cache(maxsize=1)
def _auditor(spec_path: str, settings: str) -> Auditor:
    """Return this process's auditor. Its connections serve all chunks that the process compares. From now on the process
    gives way to others of its host."""
    give_way()
    spec = AppSpec.read(Path(spec_path))
    spec.require_version()
    ends = spec.source_name, spec.source, spec.destination_name, spec.destination
    return Auditor(TaskSettings(*ends, **json.loads(settings)))
