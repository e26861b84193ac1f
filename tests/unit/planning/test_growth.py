"""Copies follow their sources up, where the link may create topics."""

from typing import Any

import pytest

from strait.config.links import Link
from strait.model import TopicFacts
from strait.planning.topic_sync.actions import GrowTopic
from strait.planning.topic_sync.sync import grown
from strait.planning.topics.pairs import Pair


def link(**settings: Any) -> Link:
    return Link.model_validate({"source": "a", "destination": "b", **settings}, strict=False)


def pair(source: int, destination: int, **told: Any) -> Pair:
    return Pair(TopicFacts("orders", "1", source), TopicFacts("a.orders", "2", destination, **told))


def test_a_copy_gets_the_partitions_that_it_lacks_and_never_loses_one() -> None:
    assert grown(link(), [pair(5, 3)], ()) == (GrowTopic("a.orders", "orders", 3, 5),)
    assert grown(link(), [pair(3, 3), pair(3, 5)], ()) == ()


@pytest.mark.parametrize(
    "settings",
    [{"create_topics": False}, {"topics": {"rules": [{"match": "ord.*", "create": False}]}}],
)
def test_it_waits_where_the_link_does_not_create_topics(settings: Any) -> None:
    assert grown(link(**settings), [pair(5, 3)], ()) == ()


def test_a_rule_may_grow_what_the_link_does_not() -> None:
    settings = link(create_topics=False, topics={"rules": [{"match": "orders", "create": True}]})
    assert grown(settings, [pair(5, 3)], ())


def test_what_the_destination_has_refused_is_not_asked_for_again_in_the_same_cycle() -> None:
    assert grown(link(), [pair(5, 3)], {"a.orders"}) == ()
    assert grown(link(), [pair(5, 3, denied="no right")], ()) == ()
