"""Which topics are copied, and why the others are not."""

from hypothesis import given
from hypothesis import strategies as st

from strait.config import Naming, Topics
from strait.model import TopicFacts
from strait.planning.selection import select, selects
from strait.reasons import Reason


def source(*names: str) -> dict[str, TopicFacts]:
    return {name: TopicFacts(name, f"id-{name}", 1) for name in names}


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
    found = select(Topics(include=("tmp-1",), regex=(".*",), exclude=("tmp-.*",)), source("tmp-1", "orders"))
    assert found.selected == ("orders",)
    (skip,) = found.skipped
    assert (skip.reason, skip.detail) == (Reason.EXCLUDED, "`topics.exclude` has 'tmp-.*'")


def test_internal_topics_are_left_out_even_when_named() -> None:
    topics = Topics(include=("__consumer_offsets",), regex=(".*",))
    marked = source("__consumer_offsets", "strait.x.map") | {"odd": TopicFacts("odd", "", 1, internal=True)}
    found = select(topics, marked)
    assert found.selected == ()
    assert {skip.reason for skip in found.skipped} == {Reason.EXCLUDED}


def test_a_named_topic_that_the_source_lacks_is_missing() -> None:
    assert select(Topics(include=("b", "a")), {}).missing == ("a", "b")


def test_a_topic_that_was_copied_and_is_gone_is_missing_as_long_as_it_is_selected() -> None:
    topics = Topics(regex=("ord.*",))
    assert select(topics, {}, copied_before=["orders", "clicks"]).missing == ("orders",)


def test_a_link_inside_one_cluster_does_not_copy_its_own_copies() -> None:
    copies = Naming(policy="prefix", prefix="dr.")
    found = select(Topics(regex=(".*",)), source("orders", "dr.orders", "dr.else"), copies=copies)
    assert found.selected == ("dr.else", "orders")


names = st.text("abct-._", min_size=1, max_size=6)


@given(st.sets(names), st.lists(names), st.sampled_from([(), ("a.*",), (".*",)]), st.sampled_from([(), (".*b",)]))
def test_every_topic_is_either_selected_or_skipped_with_a_reason(
    have: set[str], include: list[str], regex: tuple[str, ...], exclude: tuple[str, ...]
) -> None:
    topics = Topics.model_construct(include=tuple(include), regex=regex, exclude=exclude)
    found = select(topics, source(*have))
    assert sorted([*found.selected, *(skip.topic for skip in found.skipped)]) == sorted(have)
    assert all(skip.detail for skip in found.skipped)
    assert set(found.selected) == {name for name in have if selects(topics, name)}
    assert not set(found.missing) & have
