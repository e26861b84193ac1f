"""Names are derived in one place, and the way back is exact."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.config import naming
from strait.config.links import Link, Naming
from strait.config.naming import Names
from strait.config.topic_names import is_never_copied, why_illegal

topics = st.from_regex(r"[A-Za-z0-9._-]{1,100}", fullmatch=True)
affixes = st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True)
one_to_one = st.one_of(
    st.just({}),
    affixes.map(lambda affix: {"policy": "prefix", "prefix": affix}),
    affixes.map(lambda affix: {"policy": "suffix", "suffix": affix}),
    st.just({"policy": "alias"}),
    st.tuples(affixes, affixes).map(lambda pair: {"policy": "alias", "alias": pair[0], "separator": pair[1]}),
)
RULES = {
    "policy": "rules",
    "rules": [
        {"match": r"([a-z]+)\.(?P<rest>.*)", "replace": r"\g<rest>.\1"},
        {"match": r"(?i)raw-(\d+)-(.*)", "replace": r"\2_v\1"},
    ],
}


def link(naming: dict[str, Any], **settings: Any) -> Link:
    return Link.model_validate({"source": "a", "destination": "b", "naming": naming} | settings, strict=False)


@given(st.sets(topics), one_to_one)
def test_each_copy_leads_back_to_the_topic_it_was_copied_from(known: set[str], policy: dict[str, Any]) -> None:
    names = Names(link(policy))
    back = names.sources(sorted(known))
    assert {names.destination(topic): topic for topic in known} == back
    assert len(back) == len(known), "two topics got one name"


@given(st.sets(st.from_regex(r"(?:[a-z]{1,3}\.|raw-[0-9]-)[a-z.]{0,5}", fullmatch=True)))
def test_the_way_back_of_naming_rules_is_looked_up_among_known_topics(known: set[str]) -> None:
    names = Names(link(RULES))
    for name, topic in names.sources(sorted(known)).items():
        assert topic in known
        assert names.destination(topic) == name


@pytest.mark.parametrize(
    ("topic", "name"),
    [("eu.orders", "orders.eu"), ("RAW-7-clicks", "clicks_v7"), ("plain", "plain"), ("eu.raw-1-x", "raw-1-x.eu")],
)
def test_the_first_naming_rule_that_matches_makes_the_name(topic: str, name: str) -> None:
    assert Names(link(RULES)).destination(topic) == name


def test_a_topic_that_no_naming_rule_matches_may_be_refused() -> None:
    assert Names(link(RULES | {"otherwise": "refuse"})).destination("plain") is None


def test_the_alias_is_the_sources_name_unless_another_is_given() -> None:
    assert Names(link({"policy": "alias"})).destination("orders") == "a.orders"
    assert Names(link({"policy": "alias", "alias": "eu", "separator": "__"})).destination("orders") == "eu__orders"


def test_the_rule_of_a_topic_may_have_its_own_naming() -> None:
    rules = [{"match": "pay.*", "naming": {"policy": "suffix", "suffix": "-eu"}}, {"match": "plain"}]
    names = Names(link({"policy": "prefix", "prefix": "eu."}, topics={"rules": rules}))
    assert [names.destination(topic) for topic in ("payments", "plain", "other")] == [
        "payments-eu",
        "eu.plain",
        "eu.other",
    ]


@pytest.mark.parametrize(
    ("topic", "came"),
    [("b.orders", True), ("c.b.orders", True), ("b", False), ("orders.b", False), ("bb.orders", False)],
)
def test_a_topic_with_the_destinations_alias_in_front_came_from_there(topic: str, came: bool) -> None:
    assert Names(link({"policy": "alias"})).came_from_destination(topic) is came
    assert not Names(link({"policy": "prefix", "prefix": "a."})).came_from_destination(topic)
    other = Names(link({"policy": "alias", "destination_alias": "us", "separator": "-"}))
    assert not other.came_from_destination(topic)
    assert other.came_from_destination("us-orders")


@pytest.mark.parametrize("topic", ["a", "A.b_c-9", "x" * 249, "..."])
def test_names_that_kafka_takes(topic: str) -> None:
    assert why_illegal(topic) is None


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("", "not an allowed name"),
        (".", "not an allowed name"),
        ("..", "not an allowed name"),
        ("x" * 250, "250 characters"),
        ("a b/c", r"other than letters.*: ' /'$"),
        ("größe", "'ßö'"),
        ("a\nb", r"'\\n'$"),
        ("strait.a-to-b.map", "state topics"),
        ("__consumer_offsets", "Kafka's own"),
    ],
)
def test_names_that_kafka_refuses(topic: str, why: str) -> None:
    assert re.search(why, why_illegal(topic) or "")


@pytest.mark.parametrize(
    "topic",
    ["__consumer_offsets", ".hidden", "strait.x.plan", "mm2-offsets.a.internal", "a.checkpoints.internal"],
)
def test_internal_topics_are_known(topic: str) -> None:
    assert naming.is_internal(topic)


@pytest.mark.parametrize("separator", [".", "_", "-"])
def test_what_a_link_writes_for_clients_of_mirrormaker_is_internal_with_every_usual_separator(separator: str) -> None:
    link = Link(source="a", destination="b", naming=Naming(policy="alias", separator=separator))
    assert naming.is_internal(naming.checkpoints_topic(link))
    assert naming.is_internal(naming.offset_syncs_topic(link))


@pytest.mark.parametrize(
    "topic",
    [
        "orders",
        "heartbeats",
        "billing.internal",
        "billing_internal",
        "checkpoints-internal",
        "a.checkpoints_internal",
        "mm2internal",
        "straits",
        "_schemas",
    ],
)
def test_topics_of_users_are_not_internal(topic: str) -> None:
    assert not naming.is_internal(topic)


def test_the_state_topics_of_a_link_are_never_copied() -> None:
    for topic in (naming.plan_topic("x"), naming.map_topic("x"), naming.reports_topic("x")):
        assert is_never_copied(topic)
