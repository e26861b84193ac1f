"""The part of an audit that runs in Spark's Python workers: it imports hardly more than it needs."""

import json
import os
import pickle
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

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
            yield auditor_of(spec_path, settings).compare(chunk)
        except Exception as error:  # noqa: BLE001
            yield failed(chunk, f"{type(error).__name__}: {error}")


def source_rows(spec_path: str, settings: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of source records of transformed topics, for Spark to evaluate.

    Args:
        batches: of Arrow, with a chunk in each row.
    """
    from strait.audit.evaluating import source_rows as rows_of  # with Arrow, which other audits do not load

    auditor = auditor_of(spec_path, settings)
    for batch in batches:
        for chunk in batch.column(0).to_pylist():
            one = pickle.loads(chunk)  # noqa: S301  of this audit's driver
            yield from rows_of(one, auditor)


def compare_evaluated(spec_path: str, settings: str, batches: Iterable[Any]) -> Iterator[Any]:
    """Compare chunks of transformed topics, whose evaluated source records these rows are. Yields a result in each row."""
    import pyarrow as pa

    from strait.audit.evaluating import evaluated_sources

    auditor = auditor_of(spec_path, settings)
    for source in evaluated_sources(batches, strong=auditor.strong):
        try:
            result = auditor.compare(source.chunk, source)
        except Exception as error:  # noqa: BLE001  as above
            result = failed(source.chunk, f"{type(error).__name__}: {error}")
        yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})


def give_way() -> None:
    """Lower this process's priority for CPU to that of an audit."""
    os.setpriority(os.PRIO_PROCESS, 0, max(NICENESS, os.getpriority(os.PRIO_PROCESS, 0)))


@lru_cache(maxsize=1)
def auditor_of(spec_path: str, settings: str) -> Auditor:
    """Return this process's auditor. Its connections serve all chunks that the process compares. From now on the process
    gives way to others of its host."""
    give_way()
    spec = AppSpec.read(Path(spec_path))
    spec.require_version()
    ends = spec.source_name, spec.source, spec.destination_name, spec.destination
    return Auditor(TaskSettings(*ends, **json.loads(settings)))
