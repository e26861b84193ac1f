"""Which topics of an audit are repaired, and how."""

import json
from pathlib import Path

import pytest

from strait.audit.findings import Difference
from strait.audit.plan import AuditedPartition, AuditedTopic, AuditPlan
from strait.audit.task_result import ChunkResult, parquet
from strait.config.audit import AuditRequest
from strait.control.audit_export import lacking
from strait.control.repair.plan import repair_plan
from strait.errors import ConfigError, StraitError


def written(
    folder: Path,
    *results: ChunkResult,
    link: str = "l",
    relation: str = "map",
    compacted: str = "",
    transformed: str = "",
) -> Path:
    partitions = [
        AuditedPartition(topic=name, partition=0, copy_topic=f"c.{name}", copy_compacted=name == compacted)
        for name in ("t", "u", "v")
    ]
    plan = AuditPlan(
        id="one",
        link=link,
        request=AuditRequest.model_validate({"relation": relation}),
        source="a",
        destination="b",
        source_cluster="A",
        destination_cluster="B",
        topics=tuple(
            AuditedTopic(topic=one.topic, copy_topic=one.copy_topic, transform="abc" * (one.topic == transformed))
            for one in partitions
        ),
        partitions=tuple(partitions),
        planned_at_ms=5,
    )
    (folder / "chunks").mkdir()
    (folder / "plan.json").write_text(plan.model_dump_json())
    (folder / "chunks" / "part-0.parquet").write_bytes(parquet(results))
    (folder / "certificate.json").write_text(json.dumps({}))
    return folder


def found(topic: str, *differences: Difference) -> ChunkResult:
    counts = tuple((one.kind, one.explained, one.records) for one in differences)
    return ChunkResult(topic, 0, 0, 10, 0, 10, 0, 10, "different", counts=counts, differences=differences)


MISSING = Difference("missing", 3, -1, 2)


def test_topics_that_differ_without_an_explanation_are_copied_again_and_compacted_ones_appended_to(
    tmp_path: Path,
) -> None:
    directory = written(
        tmp_path,
        found("t", MISSING, Difference("damaged", -1, 7)),
        found("u", MISSING),
        found("v", MISSING._replace(explained="losses: x"), Difference("deleted", 0, -1)),
        compacted="u",
    )
    plan = repair_plan(directory)
    assert [(one.topic, one.copy, one.way, one.into, dict(one.differences)) for one in plan.topics] == [
        ("t", "c.t", "copy", "c.t.repaired", {"missing": 2, "damaged": 1}),
        ("u", "c.u", "append", "c.u", {"missing": 2}),
    ]
    assert [one.topic for one in repair_plan(directory, ["u"]).topics] == ["u"]
    with pytest.raises(ConfigError, match="no difference without an explanation in v"):
        repair_plan(directory, ["v"])


@pytest.mark.parametrize(("link", "relation"), [("", "offset"), ("l", "ledger")])
def test_only_audits_of_a_link_with_its_source_can_be_repaired(tmp_path: Path, link: str, relation: str) -> None:
    with pytest.raises(ConfigError, match="only audits of a link"):
        repair_plan(written(tmp_path, found("t", MISSING), link=link, relation=relation))


def test_a_transformed_topic_is_not_copied_as_it_is(tmp_path: Path) -> None:
    directory = written(tmp_path, found("t", MISSING), found("u", MISSING), transformed="u")
    with pytest.raises(ConfigError, match="u: its records are transformed") as error:
        repair_plan(directory)
    assert "resolve LINK TOPIC --restart" in error.value.hint
    with pytest.raises(ConfigError, match="u: its records are transformed"):
        repair_plan(directory, ["u"])
    assert [one.topic for one in repair_plan(directory, ["t"]).topics] == ["t"]
    assert lacking(directory).transformed == ["u"]


def test_an_audit_that_is_not_over_is_not_repaired(tmp_path: Path) -> None:
    with pytest.raises(StraitError, match="not over"):
        repair_plan(tmp_path)
