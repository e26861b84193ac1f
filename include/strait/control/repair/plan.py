"""The topics that an audit found different, and how each can be repaired."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from strait.audit.findings import NEUTRAL
from strait.audit.plan import AuditedPartition, AuditPlan
from strait.audit.task_result import ChunkResult
from strait.control.audit_export import read_results
from strait.errors import ConfigError
from strait.model import TopicPartition

Way = Literal["copy", "append"]
SUFFIX = ".repaired"


@dataclass(frozen=True)
class TopicRepair:
    """The repair of one topic.

    Attributes:
        way: ``copy``: into a new topic; ``append``: the newest values of keys, to a compacted topic itself.
        into: the topic that is written.
        differences: kind -> records, without an explanation on record.
        damaged: the damaged batches, with the brokers whose replicas have them, as text.
        partitions: of the audit.
    """

    topic: str
    copy: str
    way: Way
    into: str
    differences: Mapping[str, int]
    damaged: tuple[str, ...]
    partitions: tuple[AuditedPartition, ...]


@dataclass(frozen=True)
class RepairPlan:
    """The repairs of a link's topics, and the audit that found the differences."""

    audit: AuditPlan
    topics: tuple[TopicRepair, ...]


def repair_plan(directory: Path, topics: Collection[str] = ()) -> RepairPlan:
    """Return the topics that an audit found different.

    Args:
        directory: of the audit.
        topics: source topics; none: all that differ.

    Raises:
        ConfigError: it holds no audit of a link that is over, or one of the topics does not differ.
        StateError: its results cannot be read.
    """
    audit, results = read_results(directory)
    where = f"audit {audit.id}"
    if not audit.link or audit.request.relation != "map":
        raise ConfigError(where, ["only audits of a link, with its source, can be repaired"])
    found = _differences(results)
    wrong = sorted(set(topics) - found.keys())
    if wrong:
        raise ConfigError(where, [f"found no difference without an explanation in {name}" for name in wrong])
    if changed := sorted({one.topic for one in audit.topics if one.transform} & (set(topics) or found.keys())):
        why = "its records are transformed, and a repair would copy them as they are on the source"
        hint = "delete the destination topic and run `strait resolve LINK TOPIC --restart`, to copy it again"
        raise ConfigError(where, [f"{name}: {why}" for name in changed], hint=hint)
    return RepairPlan(
        audit,
        tuple(
            _repair(audit, name, counts, tuple(_damaged(results, name)))
            for name, counts in sorted(found.items())
            if not topics or name in topics
        ),
    )


def _differences(results: Collection[ChunkResult]) -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {}
    for one in {one.key: one for one in results}.values():
        for difference in one.differences:
            if not difference.explained and difference.kind not in NEUTRAL:
                found.setdefault(one.topic, Counter())[difference.kind] += difference.records
    return found


def _damaged(results: Collection[ChunkResult], topic: str) -> Iterator[str]:
    for one in {one.key: one for one in results if one.topic == topic}.values():
        for difference in one.differences:
            if difference.kind == "damaged" and not difference.explained:
                offset = difference.copy if difference.source < 0 else difference.source
                yield f"{topic}-{one.partition}: batch at offset {offset:,}: {difference.detail}"


def _repair(audit: AuditPlan, topic: str, differences: Mapping[str, int], damaged: tuple[str, ...]) -> TopicRepair:
    partitions = tuple(one for one in audit.partitions if one.topic == topic)
    copy, compacted = partitions[0].copy_topic, any(one.copy_compacted for one in partitions)
    return TopicRepair(
        topic,
        copy,
        "append" if compacted else "copy",
        copy if compacted else copy + SUFFIX,
        dict(differences),
        damaged,
        partitions,
    )


def places(repair: TopicRepair) -> list[tuple[AuditedPartition, TopicPartition, TopicPartition]]:
    """Return each partition with its place on the source and on the destination."""
    return [
        (one, TopicPartition(repair.topic, one.partition), TopicPartition(repair.copy, one.partition))
        for one in repair.partitions
    ]
