"""Which configurations copies get, and what is altered on those that have others."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.config.links import Link
from strait.model import TopicFacts
from strait.planning.topic_sync.actions import AlterTopic, CreateTopic
from strait.planning.topic_sync.configs import altered, created_with, observed, without_unaccepted
from strait.planning.topics.pairs import Pair

NAMES = ("retention.ms", "segment.bytes", "compression.type", "min.insync.replicas", "message.timestamp.type")


def link(configs: dict[str, Any] | None = None, **rule: Any) -> Link:
    rules = [{"match": "orders", **rule}] if rule else []
    block = {"source": "a", "destination": "b", "topics": {"regex": [".*"], "rules": rules}}
    return Link.model_validate(block | {"configs": configs or {}}, strict=False)


def topic(**told: Any) -> TopicFacts:
    return TopicFacts("orders", "id", 1, **told)


def alteration(settings: Link, source: TopicFacts, destination: TopicFacts) -> AlterTopic | None:
    found = altered(settings, [Pair(source, destination)])
    return found[0] if found else None


def test_a_copy_is_created_with_what_is_set_on_its_source_but_for_what_belongs_to_the_cluster() -> None:
    source = topic(
        topic_configs={
            "segment.bytes": "2000000",
            "min.insync.replicas": "2",
            "message.timestamp.type": "LogAppendTime",
        },
        cluster_configs={"compression.type": "zstd"},
        configs={"retention.ms": "1000", "max.message.bytes": "1048588"},
    )
    assert dict(created_with(link(), source)) == {
        "segment.bytes": "2000000",
        "compression.type": "zstd",
        "retention.ms": "1000",
        "max.message.bytes": "1048588",
        "message.timestamp.type": "CreateTime",
    }


def test_a_copy_keeps_what_its_source_keeps_whatever_the_destinations_defaults_are() -> None:
    kept = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1", "max.message.bytes": "9"}
    compacting = {"delete.retention.ms": "1", "min.compaction.lag.ms": "2"}
    made = dict(created_with(link(), topic(configs={**kept, **compacting})))
    assert made == kept | {"message.timestamp.type": "CreateTime"}
    made = dict(created_with(link(), topic(configs={**kept, **compacting, "cleanup.policy": "compact"})))
    assert made == kept | compacting | {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}


def test_a_default_that_keeps_less_is_set_on_a_copy_that_is_kept_in_sync_and_no_other() -> None:
    settings, source = link({"sync": True}), topic(configs={"cleanup.policy": "delete", "retention.ms": "70"})
    found = alteration(settings, source, topic(configs={"cleanup.policy": "compact", "retention.ms": "70"}))
    assert found is not None
    assert (found.put, found.reset) == ((("cleanup.policy", "delete"),), ())
    assert alteration(settings, source, topic(configs=source.configs)) is None


def test_all_the_values_of_the_source_may_count() -> None:
    settings = link({"defaults_from": "source"})
    assert observed(settings) is None
    source = topic(configs={"max.message.bytes": "1048588", "segment.bytes": "1073741824"})
    assert dict(created_with(settings, source))["segment.bytes"] == "1073741824"


def test_overrides_win_and_those_of_a_rule_over_those_of_the_link() -> None:
    settings = link({"overrides": {"retention.ms": "5", "segment.ms": "7"}}, overrides={"retention.ms": "6"})
    found = dict(created_with(settings, topic(topic_configs={"retention.ms": "1"})))
    assert (found["retention.ms"], found["segment.ms"]) == ("6", "7")


def test_nothing_is_altered_unless_the_link_or_a_rule_says_so() -> None:
    source, copy = topic(topic_configs={"retention.ms": "1"}), topic()
    assert alteration(link(), source, copy) is None
    assert alteration(link({"sync": True}), source, copy) is not None
    assert alteration(link(sync_configs=True), source, copy) is not None
    assert alteration(link({"sync": True}, sync_configs=False), source, copy) is None


def test_only_what_differs_is_altered_and_what_the_source_has_not_goes_back_to_the_default() -> None:
    source = topic(topic_configs={"retention.ms": "1", "segment.bytes": "3"})
    copy = topic(topic_configs={"retention.ms": "2", "segment.bytes": "3", "compression.type": "lz4"})
    assert alteration(link({"sync": True}), source, copy) == AlterTopic(
        "orders",
        "orders",
        put=(("retention.ms", "1"),),
        reset=("compression.type",),
        before=(("compression.type", "lz4"), ("retention.ms", "2")),
    )


@pytest.mark.parametrize(
    "name",
    [
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
        "message.timestamp.difference.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "unclean.leader.election.enable",
        "min.insync.replicas",
    ],
)
def test_what_mirrormaker_2_leaves_to_the_destination_is_neither_set_nor_reset(name: str) -> None:
    settings = link({"sync": True})
    assert alteration(settings, topic(topic_configs={name: "1"}), topic()) is None
    assert alteration(settings, topic(), topic(topic_configs={name: "1"})) is None


def test_timestamps_are_left_alone_even_where_nothing_is_excluded() -> None:
    settings = link({"sync": True, "exclude": []})
    stamping = topic(topic_configs={"message.timestamp.type": "LogAppendTime"})
    assert alteration(settings, stamping, topic()) is None
    assert alteration(settings, topic(), stamping) is None
    with pytest.raises(ValueError, match="destination topics keep the timestamps"):
        link({"overrides": {"message.timestamp.type": "LogAppendTime"}})


def test_a_topic_that_a_cluster_does_not_tell_of_is_left_alone() -> None:
    source = topic(topic_configs={"retention.ms": "1"})
    assert alteration(link({"sync": True}), source, topic(denied="no right")) is None
    assert alteration(link({"sync": True}), replace(source, denied="no right"), topic()) is None


values = st.dictionaries(st.sampled_from(NAMES), st.sampled_from("123"))


@given(values, values, values, values)
def test_an_altered_copy_needs_no_more(
    on_source: dict[str, str], in_force: dict[str, str], on_copy: dict[str, str], overrides: dict[str, str]
) -> None:
    overrides.pop("message.timestamp.type", None)
    settings = link({"sync": True, "overrides": overrides})
    source, copy = topic(topic_configs=on_source, configs=in_force | on_source), topic(topic_configs=on_copy)
    found = alteration(settings, source, copy)
    if found is None:
        return
    assert dict(found.put).keys().isdisjoint(found.reset)
    assert all(on_copy.get(name) != value for name, value in found.put) and set(found.reset) <= on_copy.keys()
    after = {name: value for name, value in (on_copy | dict(found.put)).items() if name not in found.reset}
    assert alteration(settings, source, replace(copy, topic_configs=after)) is None


UNKNOWN = "cluster b: creating topic orders: INVALID_CONFIG: Unknown topic config name: message.format.version"


@pytest.mark.parametrize(
    ("refusal", "left_out"),
    [
        (UNKNOWN, ("message.format.version", "3.0")),
        (
            "INVALID_CONFIG: Invalid value 100000 for configuration segment.bytes: at least 1048576",
            ("segment.bytes", "9"),
        ),
        ("… Topic cannot be configured with remote log storage.", ("remote.storage.enable", "true")),
        (
            "INVALID_CONFIG: Unknown topic config name: retention.ms",
            None,
        ),  # what it keeps is not left to the destination
        ("POLICY_VIOLATION: compression.type must be zstd", None),  # an override is what the operator wants
        ("INVALID_REPLICATION_FACTOR: 3", None),
    ],
)
def test_what_the_destination_does_not_accept_is_left_out(refusal: str, left_out: tuple[str, str] | None) -> None:
    configs = {
        "compression.type": "lz4",
        "message.format.version": "3.0",
        "remote.storage.enable": "true",
        "retention.ms": "1",
        "segment.bytes": "9",
    }
    settings = link({"overrides": {"compression.type": "lz4"}})
    found = without_unaccepted(settings, CreateTopic("orders", "orders", 1, None, tuple(configs.items())), refusal)
    assert (None if found is None else found.left_out) == (None if left_out is None else (left_out,))
    if found is not None and left_out is not None:
        assert left_out not in found.configs and len(found.configs) == 4
        assert found.detail.endswith(f"; not accepted there: {left_out[0]}={left_out[1]}")


def test_what_is_excluded_adds_to_what_always_is() -> None:
    settings = link({"exclude": ["segment.*"]})
    source = topic(topic_configs={"segment.bytes": "1", "min.insync.replicas": "1", "retention.ms": "2"})
    assert dict(created_with(settings, source)) == {"retention.ms": "2", "message.timestamp.type": "CreateTime"}
