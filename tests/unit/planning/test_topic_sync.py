"""All that copies need, told in words and remembered by the plan."""

from typing import Any

from strait.config.links import Link
from strait.model import ClusterFacts, TopicAcl, TopicFacts
from strait.planning.plan.draft import Draft
from strait.planning.review.effect import Effect
from strait.planning.topic_sync.actions import AllowAcl, DeleteTopic, WithdrawAcl, actions_data
from strait.planning.topic_sync.creation import find_destinations
from strait.planning.topic_sync.retirement import Retirement
from strait.planning.topic_sync.sync import Memory, TopicSync, follows_acls, topic_sync
from strait.planning.topics.selection import Selection
from strait.state.schema import GivenAcl

READ = TopicAcl("orders", "LITERAL", "User:ann", "*", "READ", "ALLOW")


def link(**settings: Any) -> Link:
    block = {"source": "a", "destination": "b", "topics": {"regex": [".*"]}}
    return Link.model_validate(block | settings, strict=False)


def cluster(name: str, partitions: int, acls: Any = None, **configs: str) -> ClusterFacts:
    named = {key.replace("_", "."): value for key, value in configs.items()}
    topic = TopicFacts("orders", f"{name}-orders", partitions, topic_configs=named)
    return ClusterFacts(name, f"cluster-{name}", {"orders": topic}, acls)


def decide(settings: Link, source: ClusterFacts, destination: ClusterFacts, **more: Any) -> TopicSync:
    destinations = find_destinations(settings, Selection({"orders": "orders"}, (), ()), source, destination)
    return topic_sync(settings, destinations, source, destination, more.pop("memory", Memory()), **more)


def test_each_thing_is_one_line() -> None:
    settings = link(configs={"sync": True}, acls={"sync": True})
    source = cluster("a", 6, frozenset({READ}), retention_ms="1", segment_ms="2")
    destination = cluster("b", 3, frozenset(), retention_ms="5", segment_bytes="9")
    retirement = Retirement(delete=(DeleteTopic("copy.old", "old", 7),))
    found = decide(settings, source, destination, retirement=retirement)
    assert [str(Effect(action.verb, action.subject, action.detail)) for action in found.actions] == [
        "grows     orders: from 3 to 6 partitions",
        "alters    orders: retention.ms 5 -> 1, segment.ms by default -> 2, segment.bytes 9 -> by default",
        "allows    orders: ALLOW READ on topic orders to User:ann",
        "deletes   copy.old: old no longer exists on the source",
    ]
    assert found.actions[0].done_line == "grew      orders: from 3 to 6 partitions"
    data = actions_data(found.actions, found.acls_denied)
    assert [key for key, value in data.items() if value] == ["grow", "alter", "acls", "delete"]
    assert data["alter"] == [
        {
            "topic": "orders",
            "put": {"retention.ms": "1", "segment.ms": "2"},
            "reset": ["segment.bytes"],
            "before": {"retention.ms": "5", "segment.bytes": "9"},
        }
    ]


def test_a_link_as_it_is_needs_nothing() -> None:
    settings = link(configs={"sync": True})
    found = decide(settings, cluster("a", 2, retention_ms="1"), cluster("b", 2, retention_ms="1"))
    assert found.actions == ()


def test_rules_are_asked_for_only_where_some_topic_follows_them() -> None:
    assert not follows_acls(link())
    assert follows_acls(link(acls={"sync": True}))
    ruled = link(topics={"rules": [{"match": "orders", "sync_acls": True}]})
    assert follows_acls(ruled)
    assert decide(ruled, cluster("a", 1, frozenset({READ})), cluster("b", 1, frozenset())).actions == (AllowAcl(READ),)
    others = link(topics={"rules": [{"match": "clicks", "sync_acls": True}]})
    assert decide(others, cluster("a", 1, frozenset({READ})), cluster("b", 1, frozenset())).actions == ()


def test_the_plan_remembers_what_was_given_and_where_the_link_began() -> None:
    settings = link(acls={"sync": True, "remove": True})
    there = cluster("b", 1, frozenset({READ}))
    first = decide(settings, cluster("a", 1, frozenset({READ})), there, done=[AllowAcl(READ)])
    draft = Draft(1, False, (), (), (), copied_from=first.memory.copied_from, acls=first.given)
    plan = draft.as_plan(link="l", group="default", version=1, producer_id=7, now_ms=1)
    memory = Memory.of([plan])
    assert (memory.copied_from, memory.acls) == ("cluster-a", (READ,))
    other = TopicAcl("other", *READ[1:])
    moved = ClusterFacts("a", "another cluster", cluster("a", 1).topics, frozenset({other}))
    later = decide(settings, moved, there, memory=memory)
    assert later.actions == (WithdrawAcl(READ),)
    assert later.memory.copied_from == "cluster-a", "whatever the source has become"


def test_on_the_word_of_a_plan_that_may_be_foreign_no_rule_that_denies_is_removed() -> None:
    settings = link(acls={"sync": True, "remove": True})
    denied = READ._replace(permission="DENY", principal="User:mallory")
    draft = Draft(
        1, False, (), (), (), copied_from="cluster-a", acls=tuple(GivenAcl(**acl._asdict()) for acl in (READ, denied))
    )
    plan = draft.as_plan(link="l", group="default", version=1, producer_id=7, now_ms=1)
    there = cluster("b", 1, frozenset({READ, denied}))
    left = cluster("a", 1, frozenset({TopicAcl("orders", *READ[1:])._replace(principal="User:other")}))
    assert {WithdrawAcl(denied), WithdrawAcl(READ)} <= {
        *decide(settings, left, there, memory=Memory.of([plan])).actions
    }
    actions = decide(settings, left, there, memory=Memory.of([plan], {"default"})).actions
    assert WithdrawAcl(denied) not in actions
    assert WithdrawAcl(READ) in actions
