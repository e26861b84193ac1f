"""Heartbeats: MirrorMaker 2's bytes, topics and names; written by one slot alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.config.links import Link
from strait.config.rules import rule_of
from strait.config.selecting import selects
from strait.errors import ProtocolError
from strait.model import ClusterFacts, TopicFacts
from strait.planning.topic_sync.heartbeats import missing, planned, with_heartbeats, written_by_links
from strait.state.heartbeats import Heartbeat, beating
from strait.state.schema import Plan, PlannedHeartbeat, PlannedTopic

# Written by MirrorMaker 2 (Kafka 4.3.1) into `heartbeats` of cluster "target", and read back with a consumer.
KEY_OF_MM2 = b"\x00\x06source\x00\x06target"
VALUE_OF_MM2 = b"\x00\x00\x00\x00\x01\x99\xab\xcd\xef\x01"


def link(**settings: Any) -> Link:
    base = {"source": "a", "destination": "b", "heartbeats": {"enabled": True}, "topics": {"include": ["orders"]}}
    return Link.model_validate(base | settings, strict=False)


def facts(*topics: str) -> ClusterFacts:
    return ClusterFacts("a", "id", {topic: TopicFacts(topic, topic, 1) for topic in topics})


def test_bytes_are_those_of_mirror_maker_2() -> None:
    beat = Heartbeat("source", "target", 0x199ABCDEF01)
    assert (beat.key(), beat.value()) == (KEY_OF_MM2, VALUE_OF_MM2)


@given(st.text(max_size=100), st.text(max_size=100), st.integers(-1, 1 << 60))
def test_what_was_written_is_read(source: str, target: str, at_ms: int) -> None:
    beat = Heartbeat(source, target, at_ms)
    assert Heartbeat.decode(beat.key(), beat.value()) == beat


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (KEY_OF_MM2[:-1], VALUE_OF_MM2),
        (KEY_OF_MM2 + b"x", VALUE_OF_MM2),
        (b"", VALUE_OF_MM2),
        (b"\xff\xff", VALUE_OF_MM2),
        (b"\x00\x01\xff\x00\x00", VALUE_OF_MM2),
        (KEY_OF_MM2, VALUE_OF_MM2[:-1]),
        (KEY_OF_MM2, b"\x00\x01" + VALUE_OF_MM2[2:]),
    ],
)
def test_what_is_no_heartbeat_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(ProtocolError):
        Heartbeat.decode(key, value)


def test_without_heartbeats_a_link_is_as_it_was() -> None:
    quiet = link(heartbeats={"enabled": False})
    assert with_heartbeats(quiet) is quiet
    assert planned(quiet) is None
    assert missing(quiet, facts()) is None


@pytest.mark.parametrize(
    ("topic", "selected"),
    [
        ("orders", True),
        ("heartbeats", True),
        ("c.heartbeats", True),
        ("d.c.heartbeats", True),
        ("b.heartbeats", False),
        ("c.b.heartbeats", False),
        ("b.c.heartbeats", False),
        ("heartbeats.c", False),
        ("heartbeatsX", False),
    ],
)
def test_heartbeats_are_selected_but_not_back_to_where_they_came_from(topic: str, selected: bool) -> None:
    assert selects(with_heartbeats(link()).topics, topic) is selected


def test_what_the_link_excludes_stays_excluded() -> None:
    beating_link = with_heartbeats(link(topics={"exclude": ["c\\..*"]}))
    assert not selects(beating_link.topics, "c.heartbeats")
    assert selects(beating_link.topics, "heartbeats")


def test_copies_get_the_sources_name_whatever_the_links_naming() -> None:
    given = {"naming": {"policy": "prefix", "prefix": "x-"}, "topics": {"rules": [{"match": ".*"}]}}
    topics = with_heartbeats(link(**given)).topics
    for topic in ("heartbeats", "c.heartbeats"):
        naming = rule_of(topics, topic).naming
        assert naming is not None
        assert (naming.policy, naming.alias, naming.separator) == ("alias", None, ".")
    assert rule_of(topics, "orders").naming is None


def test_a_links_own_alias_and_separator_count() -> None:
    mine = link(naming={"policy": "alias", "alias": "north", "separator": "_"})
    topics = with_heartbeats(mine).topics
    assert rule_of(topics, "c_heartbeats").naming == mine.naming
    assert not selects(topics, "b_heartbeats")
    assert planned(mine) == PlannedHeartbeat(topic="heartbeats", source="b", target="north", interval_seconds=1)


def test_the_topic_is_created_where_it_is_missing_as_mirror_maker_2_does() -> None:
    found = missing(link(heartbeats={"enabled": True, "replication_factor": 3}), facts("orders"))
    assert found is not None
    assert (found.topic, found.partitions, found.replication_factor) == ("heartbeats", 1, 3)
    assert found.configs == (("cleanup.policy", "compact"),)
    assert missing(link(), facts("heartbeats")) is None


@pytest.mark.parametrize(
    ("slots", "stopped", "owner"), [((1,), False, 1), ((0, 1), False, 0), ((None,), False, None), ((1,), True, None)]
)
def test_the_slot_that_copies_heartbeats_writes_them(
    slots: tuple[int | None, ...], stopped: bool, owner: int | None
) -> None:
    topics = tuple(
        PlannedTopic(source=topic, destination=topic, source_id="s", destination_id="d", slots=given)
        for topic, given in {"orders": (0, 1, 2), "heartbeats": slots}.items()
    )
    plan = Plan(
        link="l",
        group="g",
        version=1,
        producer_id=1,
        stopped=stopped,
        slots=3,
        topics=topics,
        heartbeat=planned(link()),
        published_at_ms=0,
    )
    assert [slot for slot in range(3) if beating(plan, slot)] == ([] if owner is None else [owner])


@pytest.mark.parametrize(
    ("enabled", "expected"),
    [(False, set()), (True, {"heartbeats", "a.heartbeats", "c.a.heartbeats"})],
)
def test_only_what_links_write_is_no_topic_of_users(enabled: bool, expected: set[str]) -> None:
    names = [
        "orders",
        "heartbeats",
        "a.heartbeats",
        "c.a.heartbeats",
        "devices.heartbeats",
        "xa.heartbeats",
        "a.orders",
    ]
    settings = link(heartbeats={"enabled": enabled})
    plan = Plan(
        link="l",
        group="g",
        version=1,
        producer_id=1,
        slots=1,
        topics=tuple(
            PlannedTopic(source=name, destination=name, source_id="s", destination_id="d", slots=(0,)) for name in names
        ),
        heartbeat=planned(settings),
        published_at_ms=0,
    )
    assert written_by_links(settings, [plan], ["a", "b", "c"]) == expected
