"""What another tool has copied is no record of the cluster that holds it: links begin after it, or say that they do not."""

from collections.abc import Mapping
from typing import Any

import pytest

from strait.config.links import Link
from strait.model import ClusterFacts, TopicFacts, TopicPartition
from strait.planning.plan.moved_copies import after_moved_in, leaves_copies_out, withheld
from strait.planning.plan.planner import Survey, compose, survey
from strait.planning.review.backfill import starts_at
from strait.planning.review.effects import effects
from strait.planning.risks.loops import moved_in
from strait.planning.topics.start_offsets import AfterCopies, AtOffset, AtTime, StartOffsets
from strait.reasons import Reason
from strait.state.moved_copies import MovedCopies

COPIES = MovedCopies(moved_in="t", topic_id="id-t", link="a-to-b", source="cluster-a", ends=(800, 0))


def back(**settings: Any) -> Link:
    """The link that goes back, from b to a."""
    base = {"source": "b", "destination": "a", "topics": {"include": ("t", "u")}}
    return Link.model_validate(base | settings)


def surveyed(link: Link, topics: Mapping[str, str], destination: str = "cluster-a", *, there: bool = True) -> Survey:
    """``topics``: with their IDs. ``there``: whether their copies exist."""
    facts = {name: TopicFacts(name, one, 2) for name, one in topics.items()}
    copies = {name: TopicFacts(name, f"{one}-copy", 2) for name, one in topics.items()} if there else {}
    return survey("b-to-a", link, ClusterFacts("b", "cluster-b", facts), ClusterFacts("a", destination, copies), {})


def source(topics: Mapping[str, str]) -> ClusterFacts:
    return ClusterFacts("b", "cluster-b", {name: TopicFacts(name, one, 2) for name, one in topics.items()})


@pytest.mark.parametrize(
    ("settings", "topic_id", "destination", "begins"),
    [
        ({}, "id-t", "cluster-a", [AfterCopies(800, "earliest"), "earliest"]),
        ({"start": "latest"}, "id-t", "cluster-a", [AfterCopies(800, "latest"), "latest"]),
        ({"start": 1_700_000_000_000}, "id-t", "cluster-a", [AfterCopies(800, AtTime(1_700_000_000_000)), AtTime(1_700_000_000_000)]),
        ({"start": {0: 5, 1: 6}}, "id-t", "cluster-a", [AtOffset(5), AtOffset(6)]),
        ({}, "", "cluster-a", [AfterCopies(800, "earliest"), "earliest"]),
        ({}, "of another topic", "cluster-a", ["earliest", "earliest"]),
        ({}, "id-t", "cluster-c", [AfterCopies(800, "earliest"), "earliest"]),
        ({"copies": "forward"}, "id-t", "cluster-c", ["earliest", "earliest"]),
        ({"copies": "forward"}, "id-t", "cluster-a", [AfterCopies(800, "earliest"), "earliest"]),
        ({"copies": "all"}, "id-t", "cluster-a", ["earliest", "earliest"]),
    ],
)  # fmt: skip
def test_a_link_begins_after_the_copies_that_it_leaves_out(
    settings: dict[str, Any], topic_id: str, destination: str, begins: list[object]
) -> None:
    link, topics = back(**settings), {"t": topic_id, "u": "id-u"}
    found = after_moved_in(link, surveyed(link, topics, destination), source(topics), [COPIES])
    assert [found.new[TopicPartition("t", number)].fresh.begin for number in range(2)] == begins
    assert leaves_copies_out(link, found) == (link.copies != "all")


def test_topics_whose_copies_are_yet_to_be_created_begin_there_too() -> None:
    link, topics = back(), {"t": "id-t"}
    found = after_moved_in(link, surveyed(link, topics, there=False), source(topics), [COPIES])
    proposal = compose(link, found, StartOffsets(), {}, stopped=False)
    assert starts_at(link, proposal) == {
        TopicPartition("t", 0): AfterCopies(800, "earliest"),
        TopicPartition("t", 1): "earliest",
    }


def test_the_plan_says_so_and_names_the_risk() -> None:
    link, topics = back(), {"t": "id-t", "u": "id-u"}
    found = after_moved_in(link, surveyed(link, topics), source(topics), [COPIES])
    places = found.new
    starts = StartOffsets(dict.fromkeys(places, 800), dict.fromkeys((new.target for new in places.values()), 0))
    details = {
        effect.subject: effect.detail for effect in effects(link, compose(link, found, starts, {}, stopped=False))
    }
    assert details == {"t": "from earliest, after the records that another tool replicated", "u": "from earliest"}
    (risk,) = moved_in(link, found.moved_in)
    assert (risk.code, risk.topic) == ("moved_in", "t")
    assert "t-0 before offset 800" in risk.detail and "starts after them" in risk.detail
    (forced,) = moved_in(back(start={0: 5}), found.moved_in)
    assert "return to a" in forced.detail


def test_starts_wait_while_it_is_unknown_what_are_copies() -> None:
    rule = {"match": "u", "copies": "all"}
    link, topics = back(topics={"include": ("t", "u"), "rules": (rule,)}), {"t": "id-t", "u": "id-u"}
    held = withheld(link, surveyed(link, topics), Reason.PRODUCERS_UNREADABLE, "why")
    assert {place.topic for place in held.new} == {"u"}
    (waits,) = held.waiting
    assert (waits.topic, waits.partitions, waits.reason, waits.detail) == ("t", (0, 1), "producers_unreadable", "why")


def test_a_second_import_adds_to_the_first_one_of_the_same_topic() -> None:
    assert COPIES.model_copy(update={"ends": (0, 5, 7)}).merged([COPIES]).ends == (800, 5, 7)
    assert COPIES.model_copy(update={"ends": (0,), "topic_id": "another"}).merged([COPIES]).ends == (0,)
