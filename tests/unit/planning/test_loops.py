"""What may come back, come twice, or stay behind, given who else copies."""

from collections.abc import Mapping
from typing import Any

import pytest

from strait.config.links import Link
from strait.model import TopicFacts
from strait.planning.risks.loops import growing_names, loops_of
from strait.planning.topics.selection import select
from strait.state.schema import Registration


def link(source: str = "a", destination: str = "b", **settings: Any) -> Link:
    return Link.model_validate({"source": source, "destination": destination, **settings})


def other(source: str, destination: str) -> Registration:
    return Registration(producer_id=1, link=f"{source}-to-{destination}", source=source, destination=destination)


def names_of(given: Link) -> Mapping[str, str]:
    """As a plan selects and names its topics."""
    return select("a-to-b", given, {topic: TopicFacts(topic, "", 1) for topic in given.topics.include}).names


EXPECTING = {"topics": {"include": ("t",), "rules": ({"match": "t", "on_foreign": "expect"},)}}

EXPECTING_ONE = {"topics": {"include": ("t", "h"), "rules": ({"match": "t", "on_foreign": "expect"},)}}
ALIASED = {
    "topics": {"include": ("t", "h"), "rules": ({"match": "h", "on_foreign": "expect", "naming": {"policy": "alias"}},)}
}


@pytest.mark.parametrize(
    ("settings", "into_source", "into_destination", "codes"),
    [
        ({}, [], [], []),
        ({}, [], [("a", "b"), ("c", "b")], []),
        ({}, [("b", "a")], [("a", "b")], ["both_write"]),
        (EXPECTING, [("b", "a")], [("a", "b")], []),
        (EXPECTING | {"copies": "forward"}, [("b", "a")], [("a", "b")], []),
        (EXPECTING | {"copies": "all"}, [("b", "a")], [("a", "b")], ["loop"]),
        (EXPECTING_ONE, [("b", "a")], [("a", "b")], ["both_write"]),
        (ALIASED, [("b", "a")], [("a", "b")], ["both_write"]),
        ({}, [("c", "a")], [("a", "b")], ["copies_stay"]),
        ({}, [("c", "a")], [("a", "b"), ("c", "b")], []),
        ({"copies": "forward"}, [("c", "a")], [("a", "b")], []),
        ({"copies": "forward"}, [("c", "a")], [("a", "b"), ("c", "b")], ["copied_twice"]),
        ({"naming": {"policy": "prefix", "prefix": "a."}}, [("b", "a"), ("c", "a")], [], []),
    ],
)
def test_the_registers_of_both_clusters_tell_what_a_link_should_be_asked_about(
    settings: dict[str, Any],
    into_source: list[tuple[str, str]],
    into_destination: list[tuple[str, str]],
    codes: list[str],
) -> None:
    given = link(**({"topics": {"include": ("t",)}} | settings))
    found = loops_of(
        given, names_of(given), "b", [other(*ends) for ends in into_source], [other(*ends) for ends in into_destination]
    )
    assert [loop.code for loop in found] == codes


def test_topics_that_would_halt_are_named() -> None:
    given = link(topics=EXPECTING_ONE["topics"])
    (risk,) = loops_of(given, names_of(given), "b", [other("b", "a")], [])
    assert risk.detail.endswith("1 topic has none: h")


@pytest.mark.parametrize(
    ("source", "added", "grows"),
    [
        ("orders", "a.{}", False),
        ("c.b.a.orders", "a.{}", True),
        ("a.orders", "a.{}", True),
        ("data.orders", "a.{}", False),
        ("europe", "eu{}", False),
        ("orders.copy", "{}.copy", True),
        ("orders.copy-west", "{}.copy", True),
        ("orders.copying", "{}.copy", False),
        ("orders", "{}", False),
        ("x-orders", "{}-x", False),
        ("orders", "renamed", False),
    ],
)
def test_a_topic_that_went_round_a_ring_has_what_the_link_adds_already(source: str, added: str, grows: bool) -> None:
    names = {source: added.format(source), "other": "a.other"}
    assert [(risk.code, source in risk.detail) for risk in growing_names(names)] == [("names_grow", True)] * grows


def test_the_topics_of_a_plan_are_given_by_their_names_at_the_source() -> None:
    given = link(naming={"policy": "prefix", "prefix": "a."}, topics={"include": ("c.b.a.orders", "orders")})
    (risk,) = growing_names(names_of(given))
    assert risk.detail.startswith("1 topic already has the prefix or suffix that this link adds: c.b.a.orders;")
