"""Audits of a link made by hand, without Spark: planned as its driver does, compared chunk by chunk in this process."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from strait.audit.certificate import certificate
from strait.audit.chunks import Chunk, chunks_of, sampled
from strait.audit.ledger_plan import plan_ledger, wanted
from strait.audit.ledger_rows import ledger_chunks
from strait.audit.ledger_topic import rows_in_topic
from strait.audit.link_state import Ends, map_of, read_link
from strait.audit.observing import plan_copies, plan_link
from strait.audit.plan import AuditedPartition, AuditPlan
from strait.audit.task import Auditor, TaskSettings
from strait.audit.task_result import ChunkResult, parquet
from strait.config.audit import AuditRequest
from strait.config.cluster import Cluster
from strait.embedded.kafka import Cluster as EmbeddedCluster
from strait.model import TopicPartition
from support.links.engine_link import EngineLink

CHUNK_BYTES = 100_000


@dataclass(frozen=True)
class Audited:
    plan: AuditPlan
    results: Sequence[ChunkResult]
    whole: Mapping[str, Any]

    @property
    def body(self) -> Mapping[str, Any]:
        return self.whole["body"]

    @property
    def unexplained(self) -> Mapping[str, int]:
        return self.body["unexplained"]

    def total(self, name: str) -> int:
        return int(self.body[name])

    def write(self, directory: Path) -> None:
        """As the driver of the audit does."""
        (directory / "chunks").mkdir(parents=True)
        (directory / "plan.json").write_text(self.plan.model_dump_json())
        (directory / "chunks" / "part-0.parquet").write_bytes(parquet(self.results))
        (directory / "certificate.json").write_text(json.dumps(self.whole))

    @property
    def differences(self) -> list[Mapping[str, Any]]:
        return [
            one._asdict() | {"partition": result.partition} for result in self.results for one in result.differences
        ]


def ends_of(source: EmbeddedCluster, destination: EmbeddedCluster) -> Ends:
    return Ends("source", source.client_properties, "destination", destination.client_properties)


def audit_link(link: EngineLink, **request: Any) -> Audited:
    """Audit a link's topics."""
    return planned(link, **request)()


def planned(link: EngineLink, **request: Any) -> Callable[[], Audited]:
    """Plan the audit of a link's topics; it can be carried out several times."""
    return planned_between(link.source, link.destination, link.name, **request)


def planned_between(
    source: EmbeddedCluster, destination: EmbeddedCluster, link: str, **request: Any
) -> Callable[[], Audited]:
    """Plan the audit of a link by its name; as `planned`."""
    ends = ends_of(source, destination)
    wanted = AuditRequest(**{"chunk_bytes": CHUNK_BYTES} | request)
    plan = plan_link(ends, link, wanted, "by-hand")
    return partial(_audited, ends, plan, read_link(ends, link))


def audit_copies(
    source: EmbeddedCluster, destination: EmbeddedCluster, names: Mapping[str, str], relation: str, **request: Any
) -> Audited:
    """Audit copies that no link made."""
    ends = ends_of(source, destination)
    wanted = AuditRequest(**{"chunk_bytes": CHUNK_BYTES, "relation": relation, "topics": tuple(names)} | request)
    return _audited(ends, plan_copies(ends, names, wanted, "by-hand"), None)


def audit_by_ledger(link: EngineLink, **request: Any) -> Audited:
    """Check a link's destination by the rows that its slots have written, without its source."""
    there = Cluster(link.destination.client_properties, "destination")
    ends = Ends("source", {"bootstrap.servers": "127.0.0.1:1"}, "destination", there.properties)
    wished = AuditRequest(**{"chunk_bytes": CHUNK_BYTES, "relation": "ledger"} | request)
    plan = plan_ledger(ends, link.name, wished, "by-hand", partial(rows_in_topic, there, link.name))
    rows = rows_in_topic(there, link.name, wanted(plan.partitions, {one.topic: one.copy_id for one in plan.topics}))
    return _compared(
        ends, plan, lambda one: ledger_chunks(one, rows.get(TopicPartition(one.topic, one.partition), ()), wished)
    )


def _audited(ends: Ends, plan: AuditPlan, state: Any) -> Audited:
    return _compared(
        ends,
        plan,
        lambda one: chunks_of(one, plan.request, None if state is None or one.problem else map_of(one, state)),
    )


def _compared(ends: Ends, plan: AuditPlan, chunks_in: Callable[[AuditedPartition], list[Chunk]]) -> Audited:
    results, counts = [], {}
    settings = TaskSettings(
        ends.source,
        ends.source_properties,
        ends.destination,
        ends.destination_properties,
        plan.producer_id,
        plan.owners,
        plan.request.strong,
        replicas=plan.request.replicas,
    )
    auditor = Auditor(settings)
    try:
        for one in plan.partitions:
            chunks = chunks_in(one)
            counts[one.name] = len(chunks)
            results += map(auditor.compare, sampled(chunks, plan.request.sample, plan.request.seed))
    finally:
        auditor.close()
    whole = certificate(plan, results, began_at_ms=1, ended_at_ms=2, chunks=counts)
    return Audited(plan, results, whole)
