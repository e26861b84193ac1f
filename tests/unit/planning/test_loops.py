"""What may come back, come twice, or stay behind, given who else copies."""

from typing import Any

import pytest

from strait.config.links import Link
from strait.planning.risks.loops import growing_names, loops_of
from strait.state.schema import Registration


def link(source: str = "a", destination: str = "b", **settings: Any) -> Link:
    return Link.model_validate({"source": source, "destination": destination, **settings})


def other(source: str, destination: str) -> Registration:
    return Registration(producer_id=1, link=f"{source}-to-{destination}", source=source, destination=destination)


EXPECTING = {"topics": {"include": ("t",), "rules": ({"match": "t", "on_foreign": "expect"},)}}


ALIASED = {"topics": {"rules": ({"match": "h", "on_foreign": "expect", "naming": {"policy": "alias"}},)}}


@pytest.mark.parametrize(
    ("settings", "into_source", "into_destination", "codes"),
    [
        ({}, [], [], []),
        ({}, [], [("a", "b"), ("c", "b")], []),
        ({}, [("b", "a")], [("a", "b")], ["both_write"]),
        (EXPECTING, [("b", "a")], [("a", "b")], []),
        (EXPECTING | {"copies": "forward"}, [("b", "a")], [("a", "b")], []),
        (EXPECTING | {"copies": "all"}, [("b", "a")], [("a", "b")], ["loop"]),
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
    found = loops_of(
        link(**settings), "b", [other(*ends) for ends in into_source], [other(*ends) for ends in into_destination]
    )
    assert [loop.code for loop in found] == codes


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
    names = {added.format(source): source, "a.other": "other"}
    assert [(risk.code, source in risk.detail) for risk in growing_names(names)] == [("names_grow", True)] * grows
