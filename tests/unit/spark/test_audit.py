"""The driver of an audit without Spark: it waits for clusters that do not answer, shows that, and continues by its records."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from strait.audit.chunks import Chunk
from strait.audit.link_state import Ends
from strait.audit.plan import AuditedPartition, AuditPlan
from strait.audit.progress import AuditProgress
from strait.audit.task import failed
from strait.audit.task_result import ChunkResult
from strait.config.app_spec import AppSpec
from strait.config.audit import AuditJob, AuditRequest
from strait.errors import ClusterUnavailable, StateError
from strait.spark import audit as module

PARTITIONS = 40
CONNECTING = ClusterUnavailable("a", "connecting: connection refused", hint="check that the brokers run")


class Files:
    """As `HadoopFiles`, in memory. ``shown``: every progress."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], bytes] = {}
        self.shown: list[AuditProgress] = []

    def prepare(self, folder: str = "") -> None: ...

    def read(self, folder: str, name: str) -> bytes | None:
        return self.held.get((folder, name))

    def write(self, folder: str, name: str, data: bytes) -> None:
        self.held[folder, name] = data
        if name == "progress.json":
            self.shown.append(AuditProgress.model_validate_json(data))

    def names(self, folder: str) -> list[str]:
        return sorted(name for below, name in self.held if below == folder)

    @property
    def certificate(self) -> Any:
        return json.loads(self.held["", "certificate.json"])["body"]


class Driver:
    """The driver of one audit of 40 partitions; a chunk is compared by ``result``. ``answers``: of the cluster, when it is
    asked whether it is there: an error, or None."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files = Files()
        self.compared: list[int] = []
        self.result: Callable[[Chunk], ChunkResult] = equal
        self.answers: list[ClusterUnavailable | None] = []
        self.plans: list[ClusterUnavailable | AuditPlan] = [plan()]
        self.ends: list[Ends] = []
        monkeypatch.setattr(module, "HadoopFiles", lambda *_: self.files)
        monkeypatch.setattr(module, "Admin", lambda *_: self._answer())
        monkeypatch.setattr(module, "plan_copies", self._plan)
        monkeypatch.setattr(module, "require_same_topics", lambda ends, _: self.ends.append(ends))
        monkeypatch.setattr(module, "AWAY_SECONDS", 0.3)
        monkeypatch.setattr(module, "_AWAY_POLL_SECONDS", 0.01)

    def run(self, is_over: Callable[[], bool] = lambda: False) -> None:
        request = AuditRequest(relation="offset")
        job = AuditJob(id="x", directory="/results", request=request, copies={"t": "t"})
        clusters = {"source_name": "a", "source": {}, "destination_name": "b", "destination": {}}
        spec = AppSpec(
            link="", group="audit", slots=1, slot_memory_bytes=1 << 20, ledger_seconds=60, ledger_dir="/ledger",
            checkpoint_dir="/checkpoints", audit=job, **clusters,
        )  # fmt: skip
        session: Any = SimpleNamespace(sparkContext=Context(self))
        module._Audit(session, spec, job, Path("spec.json")).run(is_over)

    def compare(self, chunk: Chunk) -> ChunkResult:
        self.compared.append(chunk.facts.partition)
        return self.result(chunk)

    def _answer(self) -> None:
        answer = self.answers.pop(0) if len(self.answers) > 1 else (self.answers or [None])[0]
        if answer is not None:
            raise answer

    def _plan(self, *_: Any, whole: bool) -> AuditPlan:
        found = self.plans[0] if whole else self.plans[-1]
        if isinstance(found, ClusterUnavailable):
            raise found
        return found


class Context:
    """As Spark's, in this process. No job of it takes so long that it is seen at work."""

    master = "local[2]"

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def parallelize(self, chunks: list[Chunk], _: int) -> Any:
        job = SimpleNamespace(collect=lambda: [self._driver.compare(chunk) for chunk in chunks])
        return SimpleNamespace(mapPartitions=lambda _: job)

    def setJobGroup(self, *_: str) -> None: ...

    def cancelAllJobs(self) -> None: ...

    def statusTracker(self) -> Any:
        return SimpleNamespace(getActiveJobsIds=list, getJobIdsForGroup=lambda _: [])


def plan(problem: str = "") -> AuditPlan:
    partitions = [
        AuditedPartition(topic="t", copy_topic="t", partition=number, end=1, source_end=1, copy_end=1, problem=problem)
        for number in range(PARTITIONS)
    ]
    return AuditPlan(
        id="x", link="", request=AuditRequest(relation="offset"), source="a", destination="b", source_cluster="of-a",
        destination_cluster="of-b", partitions=tuple(partitions), planned_at_ms=1,
    )  # fmt: skip


def equal(chunk: Chunk) -> ChunkResult:
    facts = chunk.facts
    place = (facts.topic, facts.partition, *chunk.bounds, chunk.copy_from, chunk.copy_to)
    return ChunkResult(*place, "equal", records=1, by_batch=1, source_bytes=50, copy_bytes=50)


def away(chunk: Chunk) -> ChunkResult:
    return failed(chunk, f"cluster a: reading t-{chunk.facts.partition}: connection refused")


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Driver:
    return Driver(monkeypatch)


def test_all_chunks_are_compared_once(driver: Driver) -> None:
    driver.run()
    assert sorted(driver.compared) == list(range(PARTITIONS))
    assert (driver.files.certificate["verdict"], driver.files.certificate["records"]) == ("equal", PARTITIONS)
    last = driver.files.shown[-1]
    assert (last.state, last.done, last.chunks, last.failed, last.problem) == ("done", PARTITIONS, PARTITIONS, 0, "")
    (ends,) = driver.ends
    assert ends.source_properties == {"cluster.id": "of-a"}, "no other cluster may answer for one that was audited"


def test_an_audit_of_a_cluster_that_stays_away_ends_and_continues_where_it_was(driver: Driver) -> None:
    """It does not go through all chunks of the cluster, each of which waits for it, and certifies nothing."""
    driver.result = lambda chunk: equal(chunk) if len(driver.compared) <= 12 else away(chunk)
    driver.answers = [CONNECTING]
    with pytest.raises(ClusterUnavailable, match="cluster a: connecting: connection refused"):
        driver.run()
    assert ("", "certificate.json") not in driver.files.held
    assert len(driver.compared) <= 12 + 3 * 4, "three jobs of four chunks"
    shown = driver.files.shown[-1]
    assert shown.problem == "waiting: cluster a: connecting: connection refused"
    assert (shown.state, shown.done, shown.chunks) == ("comparing", 12, PARTITIONS)

    driver.result, driver.answers, driver.compared = equal, [], []
    driver.run()
    assert len(driver.compared) == PARTITIONS - 12
    assert (driver.files.certificate["verdict"], driver.files.certificate["records"]) == ("equal", PARTITIONS)
    assert driver.files.shown[-1].earlier == 12 and driver.files.shown[-1].earlier_bytes == 1200


def test_an_audit_waits_for_a_cluster_that_comes_back(driver: Driver) -> None:
    driver.answers = [CONNECTING, CONNECTING, None]
    driver.result = lambda chunk: away(chunk) if len(driver.answers) > 1 else equal(chunk)
    driver.run()
    assert driver.files.certificate["verdict"] == "equal"
    assert any(one.problem.startswith("waiting: cluster a") for one in driver.files.shown)


def test_partitions_of_a_broker_that_stays_away_are_tried_again_and_named(driver: Driver) -> None:
    driver.result = lambda chunk: away(chunk) if chunk.facts.partition == 7 else equal(chunk)
    driver.run()
    assert driver.compared.count(7) == module._ATTEMPTS
    body = driver.files.certificate
    assert (body["verdict"], body["records"]) == ("incomplete", PARTITIONS - 1)
    assert body["not_covered"][0] == "t-7: cluster a: reading t-7: connection refused"
    last = driver.files.shown[-1]
    assert (last.done, last.failed, last.problem) == (PARTITIONS - 1, 1, body["not_covered"][0])


def test_an_audit_that_waits_ends_at_once_when_it_is_stopped(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AWAY_SECONDS", 3600.0)
    driver.result, driver.answers = away, [CONNECTING]
    driver.run(lambda: any(one.problem.startswith("waiting") for one in driver.files.shown))
    assert driver.files.shown[-1].state == "stopped"
    assert ("", "certificate.json") not in driver.files.held


def test_an_audit_is_planned_without_a_broker_only_after_it_has_waited_for_it(driver: Driver) -> None:
    driver.plans = [CONNECTING, plan(problem="cluster a: timed out")]
    driver.run()
    assert driver.files.certificate["verdict"] == "incomplete"
    assert any(one.state == "planning" and one.problem.startswith("waiting") for one in driver.files.shown)
    driver.files.held.clear()
    driver.plans = [CONNECTING]
    with pytest.raises(ClusterUnavailable):
        driver.run()
    assert ("", "plan.json") not in driver.files.held


def test_records_of_a_link_whose_map_is_gone_are_not_compared_by_their_offsets() -> None:
    (one, *_) = plan().partitions
    state: Any = SimpleNamespace(plans={}, runs={})
    with pytest.raises(StateError, match="t-0: its offset map is gone"):
        module._map(one, state)
    assert module._map(one.model_copy(update={"end": 0}), state) is None
    assert module._map(one, None) is None, "an audit without a link has no map"
