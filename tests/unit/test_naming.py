"""Names are derived in one place, and the way back is exact."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait import naming
from strait.config import Naming

topics = st.from_regex(r"[A-Za-z0-9._-]{1,100}", fullmatch=True)
affixes = st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True)
namings = st.one_of(
    st.just(Naming()),
    affixes.map(lambda affix: Naming(policy="prefix", prefix=affix)),
    affixes.map(lambda affix: Naming(policy="suffix", suffix=affix)),
)


@given(topics, namings)
def test_the_source_of_a_copy_is_the_topic_it_was_copied_from(topic: str, policy: Naming) -> None:
    assert naming.source_topic(naming.destination_topic(topic, policy), policy) == topic


@given(topics, topics, namings)
def test_two_topics_never_get_one_name(one: str, other: str, policy: Naming) -> None:
    same = naming.destination_topic(one, policy) == naming.destination_topic(other, policy)
    assert same == (one == other)


def test_a_topic_that_is_no_copy_has_no_source() -> None:
    policy = Naming(policy="prefix", prefix="a.")
    assert naming.source_topic("b.orders", policy) is None
    assert naming.source_topic("a.", policy) is None


@pytest.mark.parametrize(
    "topic",
    ["__consumer_offsets", ".hidden", "strait.x.plan", "mm2-offsets.a.internal", "a.checkpoints.internal"],
)
def test_internal_topics_are_known(topic: str) -> None:
    assert naming.is_internal(topic)


@pytest.mark.parametrize("topic", ["orders", "heartbeats", "billing.internal", "straits", "_schemas"])
def test_topics_of_users_are_not_internal(topic: str) -> None:
    assert not naming.is_internal(topic)


def test_the_state_topics_of_a_link_are_internal() -> None:
    for topic in (naming.plan_topic("x"), naming.map_topic("x"), naming.reports_topic("x")):
        assert naming.is_internal(topic)
