"""What may go wrong with topics that begin to be copied."""

from dataclasses import replace

import pytest

from strait.model import TopicFacts
from strait.planning.risks.risks import (
    Known,
    Risk,
    forgetful,
    kept_less,
    risks,
    similar_names,
    smaller_messages,
    wider,
)
from strait.planning.topics.pairs import Pair

HOUR_MS = 3_600_000
FOR_EVER = str((1 << 63) - 1)
SOURCE = TopicFacts(
    "orders",
    "s",
    3,
    configs={
        "max.message.bytes": "2000000",
        "retention.ms": str(48 * HOUR_MS),
        "cleanup.policy": "delete",
        "message.timestamp.before.max.ms": FOR_EVER,
        "message.timestamp.after.max.ms": str(HOUR_MS),
    },
)
TARGET = replace(SOURCE, topic="dr.orders", topic_id="d")


def found(partitions: int = 3, known: Known | None = None, growing: tuple[str, ...] = (), **configs: str) -> list[Risk]:
    changed = {name.replace("_", "."): value for name, value in configs.items()}
    target = replace(TARGET, partitions=partitions, configs={**TARGET.configs, **changed})
    return list(risks([Pair(SOURCE, target)], growing, ["orders"], known or Known()))


def codes(*args: object, **fields: object) -> list[str]:
    return [risk.code for risk in found(*args, **fields)]


def test_a_copy_that_is_as_its_source_is_no_risk() -> None:
    assert found() == []


@pytest.mark.parametrize(
    ("configs", "code"),
    [
        ({"message_timestamp_before_max_ms": str(HOUR_MS)}, "timestamps_before"),
        ({"message_timestamp_before_max_ms": str(72 * HOUR_MS)}, None),
        ({"message_timestamp_after_max_ms": str(HOUR_MS // 2)}, "timestamps_after"),
        ({"message_timestamp_after_max_ms": FOR_EVER}, None),
        ({"max_message_bytes": "", "retention_ms": "", "message_timestamp_before_max_ms": ""}, None),
    ],
)
def test_a_stricter_destination_is_told(configs: dict[str, str], code: str | None) -> None:
    assert codes(**configs) == ([] if code is None else [code])


@pytest.mark.parametrize(
    ("configs", "code"),
    [
        ({"retention_ms": str(47 * HOUR_MS)}, "shorter_retention"),
        ({"retention_ms": "-1"}, None),
        ({"retention_ms": ""}, None),
        ({"retention_bytes": "1000"}, "smaller_retention"),
        ({"retention_bytes": "-1"}, None),
        ({"retention_ms": str(HOUR_MS), "cleanup_policy": "compact"}, "copy_compacted"),
        ({"cleanup_policy": "compact,delete"}, "copy_compacted"),
    ],
)
def test_a_copy_that_keeps_less_is_told_at_every_plan(configs: dict[str, str], code: str | None) -> None:
    changed = {name.replace("_", "."): value for name, value in configs.items()}
    source = replace(SOURCE, configs={**SOURCE.configs, "retention.bytes": "-1"})
    pair = Pair(source, replace(TARGET, configs={**source.configs, **changed}))
    assert [risk.code for risk in kept_less([pair])] == ([] if code is None else [code])


@pytest.mark.parametrize(("largest", "code"), [("1999999", "smaller_messages"), ("9999999", None), ("", None)])
def test_a_copy_that_takes_smaller_batches_is_told_at_every_plan(largest: str, code: str | None) -> None:
    pair = Pair(SOURCE, replace(TARGET, configs={**TARGET.configs, "max.message.bytes": largest}))
    assert [risk.code for risk in smaller_messages([pair])] == ([] if code is None else [code])


@pytest.mark.parametrize(
    ("source", "target", "code"),
    [(HOUR_MS, HOUR_MS - 1, "shorter_delete_retention"), (HOUR_MS, HOUR_MS, None), (HOUR_MS, 2 * HOUR_MS, None)],
)
def test_a_compacted_copy_that_forgets_deletions_sooner_is_told(source: int, target: int, code: str | None) -> None:
    here, there = (
        replace(facts, configs={"cleanup.policy": "compact", "delete.retention.ms": str(kept)})
        for facts, kept in ((SOURCE, source), (TARGET, target))
    )
    assert [risk.code for risk in kept_less([Pair(here, there)])] == ([] if code is None else [code])


def test_a_source_that_only_compacts_keeps_the_newest_record_of_each_key_for_ever() -> None:
    source = replace(SOURCE, configs={"cleanup.policy": "compact", "retention.ms": str(HOUR_MS)})
    target = replace(TARGET, configs={"cleanup.policy": "compact,delete", "retention.ms": str(48 * HOUR_MS)})
    assert [risk.code for risk in kept_less([Pair(source, target)])] == ["shorter_retention"]


def test_an_old_broker_has_one_bound_for_both_sides() -> None:
    old = {name: value for name, value in TARGET.configs.items() if not name.startswith("message.timestamp")}
    target = replace(TARGET, configs=old | {"message.timestamp.difference.max.ms": str(HOUR_MS // 2)})
    assert [risk.code for risk in risks([Pair(SOURCE, target)], (), (), Known())] == [
        "timestamps_after",
        "timestamps_before",
    ]


def test_fewer_partitions_are_a_risk_unless_they_are_added() -> None:
    (risk,) = found(partitions=2)
    assert (
        str(risk)
        == "risk      orders: fewer_partitions: dr.orders has 2 partitions, the source 3; the other partitions wait"
    )
    assert found(partitions=2, growing=("dr.orders",)) == []
    assert found(partitions=4) == []


def test_rights_that_are_known_to_be_missing_are_told_and_unknown_ones_are_not() -> None:
    denied = Known({"orders": {"DESCRIBE"}}, {"dr.orders": {"DESCRIBE", "READ"}})
    assert [risk.detail for risk in found(known=denied)] == [
        "the source does not allow READ on it",
        "the destination does not allow WRITE on dr.orders",
    ]
    allowed = Known({"orders": {"READ"}}, {"dr.orders": {"WRITE"}})
    assert found(known=allowed) == []


def test_brokers_that_forget_producers_within_hours_are_a_risk_to_the_whole_link() -> None:
    kafka, redpanda = "producer.id.expiration.ms", "transactional_id_expiration_ms"
    (risk,) = forgetful([(kafka, str(24 * HOUR_MS)), (kafka, str(2 * HOUR_MS))])
    assert (risk.topic, risk.code) == ("", "short_producer_expiration")
    assert "set producer.id.expiration.ms to 3 h or more" in risk.detail
    assert forgetful([(kafka, str(24 * HOUR_MS))]) == () == forgetful([])
    (risk,) = forgetful([(redpanda, str(HOUR_MS))])
    assert f"after 1 h, so records can be duplicated or lost; set {redpanda} to 3 h or more" in risk.detail
    assert found(known=Known()) == [], "unknown"


def test_a_quota_concerns_the_whole_link() -> None:
    (risk,) = found(known=Known(destination_quotas={"user (default)": 1e6}))
    assert (
        str(risk)
        == "risk      the link: quota: the destination limits user (default) to 1,000,000 bytes/s, broker by broker"
    )


def test_copies_whose_names_brokers_take_for_one_are_told_with_both() -> None:
    names = {"x": "a.b_c", "y": "a_b.c", "z": "a_b_d"}
    (risk,) = similar_names(names, ["y", "z"])
    assert (risk.code, risk.topic) == ("similar_names", "y")
    assert risk.detail.startswith("a_b.c differs from a.b_c only by `.` and `_`")


@pytest.mark.parametrize(("partitions", "told"), [(2, False), (3, False), (4, True)])
def test_a_copy_with_more_partitions_than_its_source_is_told_at_every_plan(partitions: int, told: bool) -> None:
    found = wider([Pair(SOURCE, replace(TARGET, partitions=partitions))])
    assert [risk.code for risk in found] == ["more_partitions"] * told
