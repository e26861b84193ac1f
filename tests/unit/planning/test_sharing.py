"""Other links that write to the same destination topics."""

from typing import Any

import pytest

from strait.planning.risks.sharing import OtherLinks, shared
from strait.state.schema import Plan, PlannedTopic, TopicPolicy

EXPECT = TopicPolicy(on_foreign="expect")


def others(source_id: str = "c", source: str = "orders", on_foreign: Any = "halt", **unread: str) -> OtherLinks:
    topic = PlannedTopic(
        source=source,
        destination="orders",
        source_id="s",
        destination_id="d",
        slots=(0,),
        policy=TopicPolicy(on_foreign=on_foreign),
    )
    plan = Plan(
        link="other",
        group="default",
        version=1,
        producer_id=1,
        slots=1,
        topics=(topic,),
        source_cluster=source_id,
        published_at_ms=1,
    )
    return OtherLinks({"other": (plan, plan)}, unread)


@pytest.mark.parametrize(
    ("policy", "there", "told"),
    [
        (TopicPolicy(), others(), "halts, unless both have"),
        (None, others(on_foreign="expect"), "halts, unless both have"),
        (EXPECT, others(), "halts, unless both have"),
        (EXPECT, others(on_foreign="expect"), ""),
        (EXPECT, others("a", on_foreign="expect"), "each record arrives twice"),
        (EXPECT, others("a", source="other", on_foreign="expect"), ""),
        (TopicPolicy(), OtherLinks(), ""),
    ],
)
def test_two_links_into_one_topic_are_told_unless_it_is_meant(
    policy: TopicPolicy | None, there: OtherLinks, told: str
) -> None:
    policies = {} if policy is None else {"orders": policy}
    found = shared({"orders": "orders", "old": "old"}, policies, {"orders"}, "a", there)
    assert [risk.code for risk in found] == ["shared_destination"] * bool(told)
    assert all(told in risk.detail and risk.detail.startswith("link other replicates") for risk in found)


def test_what_was_replicated_before_is_not_told_again() -> None:
    assert shared({"orders": "orders"}, {}, (), "a", others()) == ()
