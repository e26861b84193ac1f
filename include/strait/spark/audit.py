"""An audit as a Spark job: the driver plans it, executors compare chunks in parallel, and the driver writes the results.

    <directory>/<id>/plan.json          the ranges that are compared, fixed at the first start
    <directory>/<id>/chunks/part-*.parquet   a row for each compared chunk
    <directory>/<id>/progress.json
    <directory>/<id>/certificate.json

A chunk's result is a function of both logs, so Spark may run a task again, and a driver that is started again compares
only the chunks that have no row yet.

While a cluster does not answer, the audit waits and shows that, then ends without a certificate: it can be resumed. If only
some brokers do not answer, it ends with a certificate that names their partitions.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

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
from strait.errors import ClusterUnavailable, StateError, StraitError
from strait.kafka.admin import Admin
from strait.launch.submission import announce_start
from strait.model import TopicPartition
from strait.spark.audit_evaluating import TransformedAudit
from strait.spark.audit_task import compare_chunks
from strait.spark.hadoop_files import HadoopFiles
from strait.spark.ledger_rows import read_rows
from strait.state.admission import Admission
from strait.state.translation import Translator
from strait.waiting import tries, unix_ms

log = logging.getLogger(__name__)

_CHUNKS = "chunks"
_JOBS = 2  # the next job fills the cores that the last chunks of one leave idle
_CHUNKS_EACH = 4  # of a job, for each core
_POLL_SECONDS = 0.5
_PROGRESS_SECONDS = 2.0
_ATTEMPTS = 3
AWAY_SECONDS = 120.0
"""How long an audit waits for a cluster that does not answer: a broker takes a minute to start, and two to be replaced."""
_AWAY_POLL_SECONDS = 2.0
_GROUP = "strait-audit"
T = TypeVar("T")


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
        self._earlier = self._earlier_bytes = 0
        self._total = 0
        self._compares_since_ms = self._read_at_ms = self._began_ms

    def run(self, is_over: Callable[[], bool]) -> None:
        try:
            self._run(is_over)
        except ClusterUnavailable:
            if not is_over():
                raise
        if is_over():
            self._show(self._progress("stopped"), at_once=True)

    def _run(self, is_over: Callable[[], bool]) -> None:
        self._files.prepare(_CHUNKS)
        if self._files.read("", "certificate.json") is not None:
            return
        self._show(AuditProgress(id=self._job.id, state="planning"), at_once=True)
        plan = self._plan(is_over)
        if plan.link:
            self._answered(lambda: require_topics(self._destination(plan), plan.link), "planning", is_over)
        chunks = self._answered(lambda: self._chunks(plan), "planning", is_over)
        self._load()
        counts = {one.name: len(chunks(one)) for one in plan.partitions}
        self._total = sum(1 for _ in _chosen(plan, chunks))
        self._compares_since_ms = unix_ms()
        for attempt in range(_ATTEMPTS):
            self._compare(plan, (chunk for chunk in _chosen(plan, chunks) if self._is_due(chunk)), is_over)
            if is_over():
                return
            if not any(one.error for one in self._results.values()) or attempt == _ATTEMPTS - 1:
                break
            log.warning("some chunks could not be compared; they are tried again")
        self._answered(lambda: require_same_topics(self._ends(plan), plan), "comparing", is_over)
        whole = certificate(
            plan, self._results.values(), began_at_ms=self._began_ms, ended_at_ms=unix_ms(), chunks=counts
        )
        if plan.link:
            self._answered(lambda: publish(self._destination(plan), plan.link, whole), "comparing", is_over)
        self._files.write("", "certificate.json", json.dumps(whole, indent=1).encode())
        self._show(self._progress("done"), at_once=True)

    def _answered(self, call: Callable[[], T], state: Any, is_over: Callable[[], bool]) -> T:
        """Return the result of a step, which is repeated while a cluster does not answer, up to `AWAY_SECONDS`. Raises the
        last error then."""
        error: StraitError | None = None
        for _ in tries(AWAY_SECONDS, _AWAY_POLL_SECONDS):
            if error is not None and is_over():
                break
            try:
                return call()
            except ClusterUnavailable as failure:
                error = failure
                self._show(self._progress(state, problem=f"waiting: {error.message}"), at_once=True)
        assert error is not None
        raise error

    def _require_answers(self, plan: AuditPlan) -> None:
        """Raise ClusterUnavailable if one of the clusters does not answer at all."""
        ends = self._ends(plan)
        if plan.request.relation != "ledger":
            Admin(ends.source_properties, ends.source)
        Admin(ends.destination_properties, ends.destination)

    def _plan(self, is_over: Callable[[], bool]) -> AuditPlan:
        """Return the recorded plan; record one at the first start."""
        recorded = self._files.read("", "plan.json")
        if recorded is not None:
            try:
                return AuditPlan.model_validate_json(recorded)
            except ValidationError as error:
                hint = "start a new audit"
                raise StateError(f"audit {self._job.id}: plan.json cannot be read: {error}", hint=hint) from None
        try:
            plan = self._answered(lambda: self._planned(whole=True), "planning", is_over)
        except ClusterUnavailable:
            if is_over():
                raise
            plan = self._planned(whole=False)
        self._files.write("", "plan.json", plan.model_dump_json(indent=1).encode())
        return plan

    def _planned(self, *, whole: bool) -> AuditPlan:
        job, ends, link = self._job, _ends(self._spec), self._spec.link
        if job.request.relation == "map":
            return plan_link(ends, link, job.request, job.id, Admission(self._spec), whole=whole)
        if job.request.relation == "ledger":
            return plan_ledger(ends, link, job.request, job.id, partial(self._rows, None))
        return plan_copies(ends, job.copies, job.request, job.id, whole=whole)

    def _chunks(self, plan: AuditPlan) -> "_Chunks":
        """Return a function that returns a partition's chunks."""
        if plan.request.relation == "ledger":
            ids = {one.topic: one.copy_id for one in plan.topics}
            rows = self._rows(plan, wanted(plan.partitions, ids))
            return lambda one: ledger_chunks(one, rows.get(TopicPartition(one.topic, one.partition), ()), plan.request)
        state = read_link(self._ends(plan), self._spec.link) if plan.link else None
        return lambda one: chunks_of(one, plan.request, _map(one, state))

    def _rows(self, plan: AuditPlan | None, wanted: Sequence[Wanted]) -> Rows:
        return read_rows(self._session, self._job.ledger, self._destination(plan), self._spec.link, wanted)

    def _ends(self, plan: AuditPlan) -> Ends:
        """Return the clusters that the audit was planned for: no other one may answer at their addresses."""
        return _ends(self._spec).expecting(plan.source_cluster, plan.destination_cluster)

    def _destination(self, plan: AuditPlan | None) -> Cluster:
        there = Cluster(self._spec.destination, self._spec.destination_name)
        return there if plan is None else there.expecting(plan.destination_cluster)

    def _load(self) -> None:
        """Read the results of earlier starts."""
        for name in self._files.names(_CHUNKS):
            for one in of_parquet(self._files.read(_CHUNKS, name) or b""):
                self._keep(one)
            self._parts += 1
        compared = [one for one in self._results.values() if not one.error]
        self._earlier, self._earlier_bytes = len(compared), sum(map(_bytes, compared))

    def _keep(self, one: ChunkResult) -> None:
        self._results[one.key] = one

    def _is_due(self, chunk: Chunk) -> bool:
        known = self._results.get(chunk.key)
        return known is None or bool(known.error)

    def _compare(self, plan: AuditPlan, todo: Iterator[Chunk], is_over: Callable[[], bool]) -> None:
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
                    results = one.result()
                    self._write(results)
                    if all(it.error for it in results):
                        self._answered(lambda: self._require_answers(plan), "comparing", is_over)
                self._show(self._progress("comparing"))

    def _write(self, results: list[ChunkResult]) -> None:
        self._files.write(_CHUNKS, f"part-{self._parts:08d}.parquet", parquet(results))
        self._parts += 1
        self._read_at_ms = unix_ms()
        for one in results:
            self._keep(one)

    def _progress(self, state: Any, problem: str = "") -> AuditProgress:
        results = self._results.values()
        failed = [one for one in results if one.error]
        done = len(results) - len(failed)
        if state == "comparing":
            done = min(self._total - len(failed), done + self._compared_by_jobs())
        return AuditProgress(
            id=self._job.id,
            state=state,
            chunks=self._total,
            done=max(0, done),
            earlier=self._earlier,
            failed=len(failed),
            records=sum(one.records for one in results),
            bytes=sum(map(_bytes, results)),
            earlier_bytes=self._earlier_bytes,
            read_at_ms=self._read_at_ms,
            problem=problem or (f"{failed[-1].topic}-{failed[-1].partition}: {failed[-1].error}" if failed else ""),
            unexplained=sum(
                records for one in results for kind, why, records in one.counts if not why and kind not in NEUTRAL
            ),
            began_at_ms=self._compares_since_ms,
            at_ms=unix_ms(),
        )

    def _compared_by_jobs(self) -> int:
        """Return how many chunks the running jobs have compared so far. Their results arrive when a job ends."""
        context: Any = self._session.sparkContext
        tracker = context.statusTracker()
        running = set(tracker.getActiveJobsIds()) & set(tracker.getJobIdsForGroup(_GROUP))
        infos = [info for job in running if (info := tracker.getJobInfo(job)) is not None]
        stages = [tracker.getStageInfo(stage) for info in infos for stage in info.stageIds]
        return sum(stage.numCompletedTasks for stage in stages if stage is not None)

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
    if state is None or one.problem:
        return None
    found = map_of(one, state)
    if found is None and one.first < one.end:  # without its map it would be compared by equal offsets
        raise StateError(
            f"audit: {one.topic}-{one.partition}: its offset map is gone since the audit was planned",
            hint="start a new audit",
        )
    return found


def _bytes(one: ChunkResult) -> int:
    return one.source_bytes + one.copy_bytes


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
        "source_cluster": plan.source_cluster,
        "destination_cluster": plan.destination_cluster,
    }


def _run(
    context: Any, chunks: list[Chunk], spec_path: str, settings: str, of_transformed: TransformedAudit
) -> list[ChunkResult]:
    evaluated = [chunk for chunk in chunks if chunk.is_evaluated]
    context.setJobGroup(f"{_GROUP}-evaluated", "evaluating")
    results = of_transformed.compare(evaluated) if evaluated else []
    if others := [chunk for chunk in chunks if not chunk.is_evaluated]:
        compare = partial(compare_chunks, spec_path, settings)
        context.setJobGroup(_GROUP, "comparing chunks")  # of this thread: each of its tasks compares a chunk
        results += context.parallelize(others, len(others)).mapPartitions(compare).collect()
    return results


def _ends(spec: AppSpec) -> Ends:
    return Ends(spec.source_name, spec.source, spec.destination_name, spec.destination)
