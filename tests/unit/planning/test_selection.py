"""Which topics are copied, under which names, and why the others are not."""

import random
import re
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strait.config.links import Link, Topics
from strait.config.naming import Names
from strait.config.selecting import selects
from strait.config.topic_names import why_illegal
from strait.errors import ConfigError
from strait.model import TopicFacts
from strait.planning.topics.selection import CameBack, Selection
from strait.planning.topics.selection import select as select_of_link
from strait.reasons import Reason

PREFIX = {"policy": "prefix", "prefix": "dr."}


def source(*names: str) -> dict[str, TopicFacts]:
    return {name: TopicFacts(name, f"id-{name}", 1) for name in names}


def link(topics: Topics, **settings: Any) -> Link:
    return Link.model_validate({"source": "a", "destination": "b", **settings}, strict=False).model_copy(
        update={"topics": topics}
    )


def select(topics: Topics, facts: dict[str, TopicFacts], *, naming: Any = None, **options: Any) -> Selection:
    return select_of_link("a-to-b", link(topics, naming=naming or {}), facts, **options)


def test_named_topics_and_whole_matches_are_selected() -> None:
    found = select(
        Topics(include=("orders",), regex=(r"metrics\..*",)), source("orders", "metrics.cpu", "my.metrics.x")
    )
    assert found.selected == ("metrics.cpu", "orders")
    assert [(skip.topic, skip.reason) for skip in found.skipped] == [("my.metrics.x", Reason.NOT_SELECTED)]


def test_a_regular_expression_must_match_the_whole_name() -> None:
    found = select(Topics(regex=("orders",)), source("orders", "orders-2", "my-orders"))
    assert found.selected == ("orders",)


def test_exclude_wins_over_a_name_and_says_which_rule_did_it() -> None:
    found = select(
        Topics(include=("tmp-1",), regex=(".*",), exclude=("x", "tmp-.*", ".*-1")), source("tmp-1", "orders")
    )
    assert found.selected == ("orders",)
    (skip,) = found.skipped
    assert (skip.reason, skip.detail) == (Reason.EXCLUDED, "`topics.exclude` has 'tmp-.*'")


def test_internal_topics_are_left_out_even_when_named() -> None:
    topics = Topics(include=("__consumer_offsets",), regex=(".*",))
    marked = source("__consumer_offsets", "strait.x.map", ".x") | {"odd": TopicFacts("odd", "", 1, internal=True)}
    found = select(topics, marked)
    assert found.selected == ()
    assert {skip.reason for skip in found.skipped} == {Reason.EXCLUDED}


def test_only_kafkas_and_straits_own_topics_stay_out_where_internal_ones_are_asked_for() -> None:
    topics = Topics(regex=(".*",), internal=True)
    marked = source("__consumer_offsets", "strait.x.map", ".x", "mm2-offsets.a.internal", "a.checkpoints.internal")
    found = select(topics, marked | {"odd": TopicFacts("odd", "", 1, internal=True)})
    assert found.selected == (".x", "a.checkpoints.internal", "mm2-offsets.a.internal")


def test_a_named_topic_that_the_source_lacks_is_missing() -> None:
    assert select(Topics(include=("b", "a")), {}).missing == ("a", "b")


def test_a_topic_that_was_copied_and_is_gone_is_missing_as_long_as_it_is_selected() -> None:
    topics = Topics(regex=("ord.*",))
    assert select(topics, {}, copied_before=["orders", "clicks"]).missing == ("orders",)


def test_each_selected_topic_has_the_name_of_its_copy() -> None:
    found = select(Topics(regex=(".*",)), source("orders", "clicks"), naming=PREFIX)
    assert found.names == {"clicks": "dr.clicks", "orders": "dr.orders"}


def test_a_link_inside_one_cluster_does_not_copy_its_own_copies() -> None:
    facts = source("orders", "dr.orders", "dr.dr.orders", "dr.else")
    found = select(Topics(regex=(".*",)), facts, naming=PREFIX, shared_cluster_id="id")
    assert found.selected == ("dr.else", "orders")
    assert [(skip.topic, skip.detail) for skip in found.skipped] == [
        ("dr.dr.orders", "is this link's destination topic of dr.orders"),
        ("dr.orders", "is this link's destination topic of orders"),
    ]
    assert select(Topics(regex=(".*",)), facts, naming=PREFIX).skipped == ()


def test_a_copy_whose_source_is_no_longer_selected_is_still_not_copied() -> None:
    topics = Topics(regex=(r"dr\..*",))
    assert select(topics, source("orders", "dr.orders"), naming=PREFIX, shared_cluster_id="id").selected == ()


def test_what_came_from_the_destination_is_not_copied_back() -> None:
    found = select(Topics(regex=(".*",)), source("orders", "b.orders", "c.b.clicks"), naming={"policy": "alias"})
    assert found.names == {"orders": "a.orders"}
    assert {skip.reason for skip in found.skipped} == {Reason.CAME_FROM_DESTINATION}


def test_what_links_from_the_destination_made_is_not_taken_for_a_topic_of_its_own() -> None:
    have = source("orders", "us.clicks", "us.views")
    topics = Topics(regex=(".*",), include=("us.views",))
    found = select(topics, have, naming=PREFIX, came_back=CameBack({"us.clicks", "us.views"}))
    assert found.names == {"orders": "dr.orders", "us.views": "dr.us.views"}
    assert [(skip.topic, skip.reason) for skip in found.skipped] == [("us.clicks", Reason.CAME_FROM_DESTINATION)]
    assert len(select(topics, have, came_back=CameBack({"us.clicks"})).names) == 3, "under equal names records tell"
    renamed = select(topics, have, came_back=CameBack({"us.clicks"}, {"us.clicks"}))
    assert set(renamed.names) == {"orders", "us.views"}, "what has another name there holds nobody else's records"


def test_a_topic_without_a_name_that_kafka_takes_is_left_out_alone() -> None:
    rules = [{"match": "bad-(.*)", "replace": r"\1/x"}, {"match": "good-(.*)", "replace": r"\1"}]
    naming = {"policy": "rules", "rules": rules, "otherwise": "refuse"}
    found = select(Topics(regex=(".*",)), source("bad-1", "good-1", "none"), naming=naming)
    assert found.names == {"good-1": "1"}
    assert [(skip.topic, skip.reason) for skip in found.skipped] == [
        ("bad-1", Reason.NO_NAME),
        ("none", Reason.NO_NAME),
    ]
    long = select(Topics(regex=(".*",)), source("x" * 249), naming=PREFIX)
    assert "252 characters" in long.skipped[0].detail


VERSIONS = {"policy": "rules", "rules": [{"match": "(.*)-v[0-9]", "replace": r"\1"}]}


def test_a_topic_whose_name_another_one_has_waits_alone() -> None:
    found = select(
        Topics(regex=(".*",)), source("a-v1", "a-v2", "b", "c-v1"), naming=VERSIONS, copied_before={"a-v2", "b"}
    )
    assert found.names == {"a-v2": "a", "b": "b", "c-v1": "c"}
    assert [(skip.topic, skip.reason, skip.detail) for skip in found.skipped] == [
        ("a-v1", Reason.NO_NAME, "its destination topic a is that of topic a-v2, too")
    ]


def test_of_two_new_topics_for_one_name_neither_is_copied() -> None:
    found = select(Topics(regex=(".*",)), source("a-v1", "a-v2", "b"), naming=VERSIONS)
    assert found.names == {"b": "b"}
    assert [(skip.topic, skip.detail.rpartition(" topic ")[2]) for skip in found.skipped] == [
        ("a-v1", "a-v2, too"),
        ("a-v2", "a-v1, too"),
    ]


def test_one_name_for_two_topics_that_are_copied_is_refused_with_both() -> None:
    have = source("a-v1", "a-v2", "b", "b-v1", "c-v1")
    with pytest.raises(ConfigError) as caught:
        select(Topics(regex=(".*",)), have, naming=VERSIONS, copied_before=set(have))
    assert caught.value.problems == (
        "topics a-v1 and a-v2 would both become a",
        "topics b and b-v1 would both become b",
    )


def test_topics_that_would_be_copied_in_a_circle_are_refused() -> None:
    swap = {"policy": "rules", "rules": [{"match": r"([a-z])\.([a-z])", "replace": r"\2.\1"}]}
    with pytest.raises(ConfigError) as caught:
        select(Topics(regex=(r".\..",)), source("a.b", "b.a", "c.c", "d.e"), naming=swap, shared_cluster_id="id")
    assert caught.value.problems == (
        "topics would be copied in a circle: a.b -> b.a -> a.b",
        "topic c.c would be copied onto itself",
    )
    assert len(select(Topics(regex=(r".\..",)), source("a.b", "b.a"), naming=swap).names) == 2


names = st.text("abct-._", min_size=1, max_size=6)


@given(
    st.sets(names), st.sets(names), st.sampled_from([(), ("a.*",), ("x", ".*")]), st.sampled_from([(), ("(?i).*B",)])
)
def test_every_topic_is_either_selected_or_skipped_with_a_reason(
    have: set[str], include: set[str], regex: tuple[str, ...], exclude: tuple[str, ...]
) -> None:
    topics = Topics(include=tuple(sorted(include)), regex=regex, exclude=exclude)
    found = select(topics, source(*have), naming=PREFIX)
    assert sorted([*found.selected, *(skip.topic for skip in found.skipped)]) == sorted(have)
    assert all(skip.detail for skip in found.skipped)
    assert set(found.selected) == {name for name in have if selects(topics, name)}
    assert not set(found.missing) & have


naming_rules = st.lists(
    st.fixed_dictionaries(
        {
            "match": st.sampled_from(["(a)(.*)", "(.*)b", "(?i)(.)(B.*)", "(.).*"]),
            "replace": st.sampled_from([r"\1", r"x\1", r"\1-y", "same", r"\1/"]),
        }
    ),
    min_size=1,
    max_size=4,
)


@given(
    st.sets(names.filter(lambda name: not name.startswith("__"))),
    naming_rules,
    st.sampled_from(["identity", "refuse"]),
    st.sampled_from([None, "id"]),
)
@example(
    {"b", "b_", "b."},
    [{"match": "(.*)b", "replace": r"x\1"}, {"match": "(.).*", "replace": r"\1"}],
    "refuse",
    "id",
)
def test_copies_have_names_of_their_own_or_the_link_is_refused(
    have: set[str], rules: list[dict[str, str]], otherwise: str, shared: str | None
) -> None:
    naming = {"policy": "rules", "rules": rules, "otherwise": otherwise}
    by_rule = Names(link(Topics(), naming=naming))
    made = {topic: by_rule.destination(topic) for topic in sorted(have)}
    legal = {topic: name for topic, name in made.items() if name is not None and why_illegal(name) is None}
    topics = Topics(regex=(".*",), internal=True)
    if len(set(legal.values())) < len(legal):
        with pytest.raises(ConfigError, match=r"would both become"):
            select(topics, source(*have), naming=naming, shared_cluster_id=shared, copied_before=have)
    counts = Counter(legal.values())
    copies = set(counts) if shared else set()  # of those too that have one name: it may have been made for either
    legal = {topic: name for topic, name in legal.items() if counts[name] == 1}
    if shared and any(_comes_back(legal, topic) for topic in legal):
        with pytest.raises(ConfigError, match=r"would be copied"):
            select(topics, source(*have), naming=naming, shared_cluster_id=shared)
        return
    found = select(topics, source(*have), naming=naming, shared_cluster_id=shared)
    assert found.names == {topic: name for topic, name in legal.items() if topic not in copies}


def _comes_back(names: dict[str, str], topic: str) -> bool:
    at = names[topic]
    for _ in names:
        if at == topic:
            return True
        at = names.get(at, "")
    return at == topic


def test_fifty_thousand_topics_are_matched_once_however_often_they_are_asked_for(record_property: Any) -> None:
    """No bound in seconds: that depends on the machine. What it took stands in the test's record."""
    record_property("seed", seed := 7)
    chosen = random.Random(seed)
    words = ["orders", "payments", "metrics", "audit", "tmp", "dev", "prod", "eu", "us", "cdc"]
    have = source(*(f"{chosen.choice(words)}.{chosen.choice(words)}-{number}" for number in range(50_000)))
    patterns = tuple(rf"{one}\.{other}-.*[0-6]" for one in words[:7] for other in words[:7])
    topics = Topics(regex=patterns, exclude=(r"(?i)TMP\..*", r".*(?<!x)audit.*9"))
    began = time.thread_time()
    found = select(topics, have, naming=PREFIX)
    record_property("first_seconds", time.thread_time() - began)
    began = time.thread_time()
    assert select(topics, have, naming=PREFIX) == found
    record_property("again_seconds", time.thread_time() - began)
    assert found.selected == tuple(name for name in sorted(have) if _by_hand(topics, name))


def _by_hand(topics: Topics, name: str) -> bool:
    excluded = any(re.fullmatch(pattern, name) for pattern in topics.exclude)
    return not excluded and any(re.fullmatch(pattern, name) for pattern in topics.regex)


def test_while_it_is_unknown_what_a_link_from_the_destination_has_made_a_regular_expression_selects_nothing_new() -> (
    None
):
    unknown = CameBack(unknown="strait.b-to-a.plan: not authorized")
    topics, facts = Topics(regex=(".*",), include=("meant",)), source("meant", "old", "us.old")
    found = select(topics, facts, naming=PREFIX, copied_before=["old"], came_back=unknown)
    assert found.selected == ("meant", "old")
    (skip,) = found.skipped
    assert (skip.topic, skip.reason) == ("us.old", Reason.CAME_FROM_DESTINATION)
    assert skip.detail.startswith("whether a link from b has made it is unknown: strait.b-to-a.plan: not authorized")
    assert len(select(topics, facts, came_back=unknown).selected) == 3, "under equal names none can multiply"
