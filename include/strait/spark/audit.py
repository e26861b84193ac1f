"""An audit as a Spark job: the driver plans it, executors compare chunks in parallel, and the driver writes the results.

    <directory>/<id>/plan.json          the ranges that are compared, fixed at the first start
    <directory>/<id>/chunks/part-*.parquet   a row for each compared chunk
    <directory>/<id>/progress.json
    <directory>/<id>/certificate.json

A chunk's result is a function of both logs, so Spark may run a task again, and a driver that is started again compares
only the chunks that have no row yet.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pyspark.sql import SparkSession

from strait.audit.certificate import certificate
from strait.audit.chunks import Chunk, chunks_of, sampled
from strait.audit.findings import NEUTRAL
from strait.audit.ledger_plan import Rows, plan_ledger, wanted
from strait.audit.ledger_rows import ledger_chunks
from strait.audit.ledger_topic import Wanted
from strait.audit.link_state import Ends, LinkState, map_of, read_link
from strait.audit.observing import plan_copies, plan_link, require_same_topics
from strait.audit.plan import AuditedPartition, AuditPlan
from strait.audit.progress import AuditProgress
from strait.audit.publishing import publish, require_topics
from strait.audit.task_result import ChunkResult, Key, of_parquet, parquet
from strait.config.app_spec import AppSpec
from strait.config.audit import AuditJob
from strait.config.cluster import Cluster
from strait.errors import StateError
from strait.launch.submission import announce_start
from strait.model import TopicPartition
from strait.spark.audit_evaluating import TransformedAudit
from strait.spark.audit_task import compare_chunks
from strait.spark.hadoop_files import HadoopFiles
from strait.spark.ledger_rows import read_rows
from strait.state.admission import Admission
from strait.state.translation import Translator
from strait.waiting import unix_ms

log = logging.getLogger(__name__)

_CHUNKS = "chunks"
_JOBS = 2  # the next job fills the cores that the last chunks of one leave idle
_CHUNKS_EACH = 4  # of a job, for each core
_POLL_SECONDS = 0.5
_PROGRESS_SECONDS = 2.0
_ATTEMPTS = 3


def audit(session: SparkSession, spec: AppSpec, spec_path: Path, is_over: Callable[[], bool]) -> None:
    """Run an audit to its end, or until it is over.

    Raises:
        StraitError: it cannot be planned, or its results cannot be written.
    """
    if spec.audit is not None:
        announce_start()
        _Audit(session, spec, spec.audit, spec_path).run(is_over)


class _Audit:
    def __init__(self, session: SparkSession, spec: AppSpec, job: AuditJob, spec_path: Path) -> None:
        self._session = session
        self._spec = spec
        self._job = job
        self._spec_path = spec_path
        hint = "give it space and permission to write, then resume the audit"
        self._files = HadoopFiles(session, f"{job.directory}/{job.id}", "audit", hint)
        self._began_ms = unix_ms()
        self._shown_at = 0.0
        self._parts = 0
        self._results: dict[Key, ChunkResult] = {}

    def run(self, is_over: Callable[[], bool]) -> None:
        self._files.prepare(_CHUNKS)
        if self._files.read("", "certificate.json") is not None:
            return
        self._show(AuditProgress(id=self._job.id, state="planning"), at_once=True)
        plan = self._plan()
        if plan.link:
            require_topics(self._destination, plan.link)
        chunks = self._chunks(plan)
        self._load()
        counts = {one.name: len(chunks(one)) for one in plan.partitions}
        for attempt in range(_ATTEMPTS):
            todo = (chunk for chunk in _chosen(plan, chunks) if self._is_due(chunk))
            self._compare(plan, todo, sum(1 for _ in _chosen(plan, chunks)), is_over)
            if is_over():
                self._show(self._progress("stopped", len(self._results)), at_once=True)
                return
            if not any(one.error for one in self._results.values()) or attempt == _ATTEMPTS - 1:
                break
            log.warning("some chunks could not be compared; they are tried again")
        require_same_topics(_ends(self._spec), plan)
        whole = certificate(
            plan, self._results.values(), began_at_ms=self._began_ms, ended_at_ms=unix_ms(), chunks=counts
        )
        if plan.link:
            publish(self._destination, plan.link, whole)
        self._files.write("", "certificate.json", json.dumps(whole, indent=1).encode())
        self._show(self._progress("done", len(self._results)), at_once=True)

    def _plan(self) -> AuditPlan:
        """Return the recorded plan; record one at the first start."""
        recorded = self._files.read("", "plan.json")
        if recorded is not None:
            try:
                return AuditPlan.model_validate_json(recorded)
            except ValidationError as error:
                hint = "start a new audit"
                raise StateError(f"audit {self._job.id}: plan.json cannot be read: {error}", hint=hint) from None
        job, ends = self._job, _ends(self._spec)
        if job.request.relation == "map":
            plan = plan_link(ends, self._spec.link, job.request, job.id, Admission(self._spec))
        elif job.request.relation == "ledger":
            plan = plan_ledger(ends, self._spec.link, job.request, job.id, self._rows)
        else:
            plan = plan_copies(ends, job.copies, job.request, job.id)
        self._files.write("", "plan.json", plan.model_dump_json(indent=1).encode())
        return plan

    def _chunks(self, plan: AuditPlan) -> "_Chunks":
        """Return a function that returns a partition's chunks."""
        if plan.request.relation == "ledger":
            ids = {one.topic: one.copy_id for one in plan.topics}
            rows = self._rows(wanted(plan.partitions, ids))
            return lambda one: ledger_chunks(one, rows.get(TopicPartition(one.topic, one.partition), ()), plan.request)
        state = read_link(_ends(self._spec), self._spec.link) if plan.link else None
        return lambda one: chunks_of(one, plan.request, _map(one, state))

    def _rows(self, wanted: Sequence[Wanted]) -> Rows:
        return read_rows(self._session, self._job.ledger, self._destination, self._spec.link, wanted)

    @property
    def _destination(self) -> Cluster:
        return Cluster(self._spec.destination, self._spec.destination_name)

    def _load(self) -> None:
        """Read the results of earlier starts."""
        for name in self._files.names(_CHUNKS):
            for one in of_parquet(self._files.read(_CHUNKS, name) or b""):
                self._keep(one)
            self._parts += 1

    def _keep(self, one: ChunkResult) -> None:
        self._results[one.key] = one

    def _is_due(self, chunk: Chunk) -> bool:
        known = self._results.get(chunk.key)
        return known is None or bool(known.error)

    def _compare(self, plan: AuditPlan, todo: Iterator[Chunk], total: int, is_over: Callable[[], bool]) -> None:
        """Compare chunks by jobs of some chunks each, and write the results of each job."""
        context: Any = self._session.sparkContext
        each = self._spec.slots * _CHUNKS_EACH
        is_local = str(context.master).startswith("local")
        settings = json.dumps(
            _settings(plan, self._spec.slots + is_local)
        )  # a local master has one thread more than slots
        of_transformed = TransformedAudit(self._session, str(self._spec_path), settings)
        running: set[Future[list[ChunkResult]]] = set()
        with ThreadPoolExecutor(_JOBS) as pool:
            while True:
                while len(running) < _JOBS and not is_over() and (chunks := list(islice(todo, each))):
                    running.add(pool.submit(_run, context, chunks, str(self._spec_path), settings, of_transformed))
                if not running:
                    return
                ended, running = wait(running, _POLL_SECONDS, FIRST_COMPLETED)
                if is_over():
                    context.cancelAllJobs()
                    return
                for one in ended:
                    self._write(one.result())
                self._show(self._progress("comparing", total))

    def _write(self, results: list[ChunkResult]) -> None:
        self._files.write(_CHUNKS, f"part-{self._parts:08d}.parquet", parquet(results))
        self._parts += 1
        for one in results:
            self._keep(one)

    def _progress(self, state: Any, total: int) -> AuditProgress:
        results = self._results.values()
        return AuditProgress(
            id=self._job.id,
            state=state,
            chunks=total,
            done=len(results),
            failed=sum(bool(one.error) for one in results),
            records=sum(one.records for one in results),
            bytes=sum(one.source_bytes + one.copy_bytes for one in results),
            unexplained=sum(
                records for one in results for kind, why, records in one.counts if not why and kind not in NEUTRAL
            ),
            began_at_ms=self._began_ms,
            at_ms=unix_ms(),
        )

    def _show(self, progress: AuditProgress, *, at_once: bool = False) -> None:
        if at_once or time.monotonic() >= self._shown_at:
            self._shown_at = time.monotonic() + _PROGRESS_SECONDS
            self._files.write("", "progress.json", progress.model_dump_json().encode())
            log.info("audit %s: %s, %d of %d chunks", progress.id, progress.state, progress.done, progress.chunks)


_Chunks = Callable[[AuditedPartition], list[Chunk]]


def _chosen(plan: AuditPlan, chunks: _Chunks) -> Iterator[Chunk]:
    """Yield the chunks to compare, one partition after the other, so that few are in memory."""
    request = plan.request
    return chain.from_iterable(sampled(chunks(one), request.sample, request.seed) for one in plan.partitions)


def _map(one: AuditedPartition, state: LinkState | None) -> Translator | None:
    return None if state is None or one.problem else map_of(one, state)


def _settings(plan: AuditPlan, tasks: int) -> dict[str, Any]:
    """Return the settings of tasks besides the spec, which has the secrets and is read by the tasks themselves.

    Args:
        tasks: maximum number that run at the same time.
    """
    return {
        "producer_id": plan.producer_id,
        "owners": plan.owners,
        "strong": plan.request.strong,
        "replicas": plan.request.replicas,
        "bytes_per_second": plan.request.bytes_per_second / tasks,
    }


def _run(
    context: Any, chunks: list[Chunk], spec_path: str, settings: str, of_transformed: TransformedAudit
) -> list[ChunkResult]:
    evaluated = [chunk for chunk in chunks if chunk.is_evaluated]
    results = of_transformed.compare(evaluated) if evaluated else []
    if others := [chunk for chunk in chunks if not chunk.is_evaluated]:
        compare = partial(compare_chunks, spec_path, settings)
        results += context.parallelize(others, len(others)).mapPartitions(compare).collect()
    return results


def _ends(spec: AppSpec) -> Ends:
    return Ends(spec.source_name, spec.source, spec.destination_name, spec.destination)
