"""Copies through the life of their topics, on real brokers: created, grown, altered, kept or deleted."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strait.config.links import LinksFile, parse
from strait.control.outcome import Outcome
from strait.control.plane import Control
from strait.planning.status.metrics import missing_destination_partitions
from support.fixtures.waiting import eventually
from support.kafka.log_ends import ends
from support.kafka.records import assert_equal, read_all
from support.kafka.topics import alter, create, delete, exists, grow, look, produce
from support.links.copying import copying

pytestmark = pytest.mark.broker

Make = Callable[..., Control]


@pytest.fixture
def link(topic_name: str) -> str:
    return "l" + topic_name[-8:]


@pytest.fixture
def make(clusters: Any, link: str) -> Iterator[Make]:
    """A control plane of the test's one link, which copies the topics whose names begin with the link's."""
    made: list[Control] = []

    def control(**settings: Any) -> Control:
        made.append(Control(_file(clusters, link, settings), link))
        return made[-1]

    yield control
    for one in made:
        one.close()


def _file(clusters: Any, link: str, settings: dict[str, Any]) -> LinksFile:
    base = {"source": "a", "destination": "b", "topics": {"regex": [f"{link}-.*"]}}
    ends_of = {"a": clusters.source.client_properties, "b": clusters.destination.client_properties}
    raw = {
        "clusters": {name: dict(properties) for name, properties in ends_of.items()},
        "links": {link: base | settings},
    }
    return parse(raw, where="links file")


def waits(outcome: Outcome) -> dict[str, str]:
    return {item.topic: item.reason for item in outcome.plan.waiting}


@pytest.mark.core
def test_a_copy_follows_its_source_up_and_loses_nothing_that_came_meanwhile(
    clusters: Any, make: Make, link: str, tmp_path: Path
) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic, 2)
    control = make(start="latest")
    with copying(control, tmp_path):
        grow(clusters.source, topic, 4)
        for partition in range(4):
            produce(clusters.source, topic, 50, partition)
        proposal = control.propose()
        assert [(item.topic, item.partitions_now, item.partitions) for item in proposal.actions] == [(topic, 2, 4)]
        outcome = control.apply(proposal)
        assert [action.done_line for action in outcome.done] == [f"grew      {topic}: from 2 to 4 partitions"]
        assert waits(outcome) == {} and None not in outcome.plan.topics[0].slots
        assert look(clusters.destination, topic).partitions == 4
        eventually(lambda: ends(clusters.destination, topic, 4) == [50] * 4, what="every record of all partitions")
    assert_equal(read_all(clusters.source, topic, 4), read_all(clusters.destination, topic, 4))
    assert control.apply().done == ()


@pytest.mark.core
def test_a_copy_has_the_configurations_of_its_source_and_keeps_them(clusters: Any, make: Make, link: str) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic, segment_bytes="2000000", min_insync_replicas="1", retention_ms="900000")
    control = make(configs={"sync": True, "overrides": {"flush.messages": "1234"}}, replication_factor="source")
    control.apply()
    made = look(clusters.destination, topic)
    assert made.topic_configs == {
        "segment.bytes": "2000000",
        "retention.ms": "900000",
        "flush.messages": "1234",
        "message.timestamp.type": "CreateTime",
        "cleanup.policy": "delete",
        "retention.bytes": "-1",
        "max.message.bytes": "1048588",
    }
    assert made.replicas == 1
    alter(clusters.source, topic, retention_ms="800000")
    alter(clusters.destination, topic, segment_ms="77000000", min_insync_replicas="1")
    assert [action.done_line for action in control.apply().done] == [
        f"altered   {topic}: retention.ms 900000 -> 800000, segment.ms 77000000 -> by default"
    ]
    kept = made.topic_configs.keys() | {"min.insync.replicas"}
    eventually(lambda: look(clusters.destination, topic).topic_configs.keys() == kept, what="only what is wanted")
    assert look(clusters.destination, topic).topic_configs["retention.ms"] == "800000"
    assert control.apply().done == ()


def test_a_copy_may_have_every_value_of_its_source(clusters: Any, make: Make, link: str) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic, compression_type="lz4")
    control = make(configs={"sync": True, "defaults_from": "source"})
    assert control.apply().created == (topic,)
    made = look(clusters.destination, topic).topic_configs
    assert (made["compression.type"], made["segment.bytes"]) == ("lz4", "1073741824")
    assert "min.insync.replicas" not in made
    assert control.apply().done == ()


def test_a_copy_that_was_there_is_left_as_it_is_unless_the_link_is_to_keep_configurations(
    clusters: Any, make: Make, link: str
) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic, retention_ms="900000")
    create(clusters.destination, topic, retention_ms="-1")
    assert make().apply().done == ()
    assert look(clusters.destination, topic).topic_configs["retention.ms"] == "-1"


def test_what_the_destination_refuses_for_one_topic_stops_no_other(clusters: Any, make: Make, link: str) -> None:
    good, bad, new = (f"{link}-{name}" for name in ("good", "bad", "new"))
    for topic in (good, bad, new):
        create(clusters.source, topic, retention_ms="900000")
    for topic in (good, bad):
        create(clusters.destination, topic)
    rules = [{"match": f"{bad}|{new}", "overrides": {"segment.bytes": "a few"}}]
    outcome = make(topics={"regex": [f"{link}-.*"], "rules": rules}, configs={"sync": True}).apply()
    assert [action.subject for action in outcome.done] == [good]
    assert outcome.refused.keys() == {bad, new}
    assert all("segment.bytes" in why for why in outcome.refused.values())
    assert waits(outcome) == {new: "destination_missing"}
    assert [topic.source for topic in outcome.plan.topics] == [bad, good], (
        "what cannot be altered is copied all the same"
    )
    assert f"refused   {bad}: " in outcome.as_text()


def test_partitions_wait_for_topics_that_others_create_and_wait_again_when_these_vanish(
    clusters: Any, make: Make, link: str
) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic, 3)
    control = make(create_topics=False)
    outcome = control.apply()
    assert waits(outcome) == {topic: "destination_missing"}
    assert missing_destination_partitions(outcome.plan) == 3
    create(clusters.destination, topic, 2)
    outcome = control.apply()
    assert outcome.plan.topics[0].slots == (0, 0, None)
    assert waits(outcome) == {topic: "destination_has_fewer_partitions"}
    assert missing_destination_partitions(outcome.plan) == 1
    grow(clusters.destination, topic, 3)
    outcome = control.apply()
    assert (waits(outcome), missing_destination_partitions(outcome.plan)) == ({}, 0)
    delete(clusters.destination, topic)
    outcome = control.apply()
    assert outcome.plan.topics == ()
    assert missing_destination_partitions(outcome.plan) == 3


def test_a_copy_is_kept_when_its_source_is_deleted(clusters: Any, make: Make, link: str) -> None:
    topic = f"{link}-orders"
    create(clusters.source, topic)
    control = make()
    control.apply()
    delete(clusters.source, topic)
    first = control.apply()
    assert waits(first) == {topic: "source_missing"}
    (waiting,) = first.plan.waiting
    assert waiting.since_ms > 0
    assert not control.apply().published, "that it is still missing is no news"
    assert exists(clusters.destination, topic)


@pytest.mark.core
def test_a_copy_is_deleted_with_its_source_where_the_link_says_so_and_then_forgotten(
    clusters: Any, make: Make, link: str, tmp_path: Path
) -> None:
    topic, other = f"{link}-orders", f"{link}-other"
    create(clusters.source, topic, 2)
    create(clusters.source, other)
    produce(clusters.source, topic, 100)
    assert make().apply().published
    patient, control = make(delete_copies_after_seconds=3600), make(delete_copies_after_seconds=0)
    with copying(control, tmp_path):
        eventually(lambda: ends(clusters.destination, topic, 2) == [100, 0], what="the copy")
        delete(clusters.source, topic)
        assert waits(patient.apply()) == {topic: "source_missing"}
        assert patient.apply().done == ()

        def deleted() -> bool:
            # Until the slot has noticed and left its last word in the map, the copy's end is not vouched for.
            return any(action.past == "deleted" for action in control.apply().done)

        eventually(deleted, what=lambda: f"its end; last {control.propose().draft}")
        eventually(lambda: not exists(clusters.destination, topic), what="no copy")
        eventually(lambda: waits(control.apply()) == {}, what="that it is forgotten")
        create(clusters.source, topic)
        produce(clusters.source, topic, 7)
        again = control.apply()
        assert again.created == (topic,)
        assert waits(again) == {}
        eventually(lambda: ends(clusters.destination, topic, 1) == [7], what="the new topic's copy")


def test_a_copy_that_holds_somebody_elses_records_is_kept(clusters: Any, make: Make, link: str) -> None:
    topic, other = f"{link}-orders", f"{link}-other"
    create(clusters.source, topic)
    create(clusters.source, other)
    control = make(delete_copies_after_seconds=0)
    control.apply()
    produce(clusters.destination, topic, 1)
    delete(clusters.source, topic)
    control.apply()
    (waiting,) = control.apply().plan.waiting
    assert (waiting.topic, waiting.reason) == (topic, "source_missing")
    assert "destination topic not deleted: partition" in waiting.detail
    assert exists(clusters.destination, topic)
    assert not control.apply().published
