"""What an audit observes of both clusters: also if it may not read some topics, or others answer at their addresses."""

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from strait.audit import link_state, observing
from strait.audit import observed as subject
from strait.audit.link_state import Ends
from strait.audit.plan import AuditedTopic, AuditPlan
from strait.config.audit import AuditRequest, Relation
from strait.config.cluster_identity import expected_id
from strait.errors import ClusterUnavailable, NotAuthorized, StateError, StraitError, UnsupportedRequest
from strait.model import ClusterFacts, TopicPartition
from strait.net.producers import ActiveProducer
from strait.state import exchanged
from strait.state.producer_registry import Registrations
from strait.state.schema import Plan, PlannedTopic, TopicPolicy

ENDS = Ends("a", {}, "b", {})
PLACES = [TopicPartition(topic, number) for topic in ("orders", "pay") for number in range(2)]


def test_producers_of_topics_that_may_be_read_are_known_if_others_may_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def active(
        _: object, cluster: str, places: Collection[TopicPartition]
    ) -> dict[TopicPartition, list[ActiveProducer]]:
        if any(one.topic == "orders" for one in places):
            raise NotAuthorized(cluster, "describing the producers of orders-0: TOPIC_AUTHORIZATION_FAILED")
        return {one: [] for one in places}

    monkeypatch.setattr(subject, "active_producers", active)
    assert subject._producers(ENDS, PLACES) == {one: [] for one in PLACES[2:]}
    assert subject._producers(ENDS, PLACES[:2]) == {}


def test_brokers_without_the_request_show_no_producers(monkeypatch: pytest.MonkeyPatch) -> None:
    def active(*_: object) -> None:
        raise UnsupportedRequest("the broker does not serve it")

    monkeypatch.setattr(subject, "active_producers", active)
    assert subject._producers(ENDS, PLACES) == {}


@pytest.mark.parametrize(("relation", "asked"), [("map", ["of-a", "of-b"]), ("ledger", ["of-b"])])
def test_the_topics_of_an_audit_are_looked_for_on_its_clusters_alone(
    monkeypatch: pytest.MonkeyPatch, relation: Relation, asked: list[str]
) -> None:
    """Whatever answers at their addresses by now: brokers of old versions have no topic IDs."""
    found = []

    def admin(properties: Mapping[str, str], cluster: str) -> SimpleNamespace:
        found.append(expected_id(properties))
        return SimpleNamespace(observe=lambda _: ClusterFacts(cluster, "", {}))

    monkeypatch.setattr(observing, "Admin", admin)
    plan = AuditPlan(
        id="x", link="l", request=AuditRequest(relation=relation), source="a", destination="b", source_cluster="of-a",
        destination_cluster="of-b", topics=(AuditedTopic(topic="t", copy_topic="t"),), planned_at_ms=1,
    )  # fmt: skip
    observing.require_same_topics(ENDS, plan)
    assert found == asked


PLAN = Plan(
    link="l", group="default", version=1, producer_id=7, slots=1, published_at_ms=1,
    topics=(PlannedTopic(source="t", destination="t", source_id="s", destination_id="d", slots=(0,)),),
)  # fmt: skip


@pytest.mark.parametrize(
    ("plans", "said"),
    [
        ({"default": PLAN}, "its state is on its source, cluster a, and not on its destination, cluster b (exchange "),
        ({}, "has no plan with topics (run `strait apply l`)"),
        (NotAuthorized("a", "reading strait.l.plan"), "has no plan with topics (run `strait apply l`)"),
        (ClusterUnavailable("a", "away"), "has no plan with topics (run `strait apply l`)"),
    ],
    ids=["exchanged", "new", "denied", "away"],
)
def test_exchanged_addresses_are_named_and_not_to_be_applied(
    monkeypatch: pytest.MonkeyPatch, plans: Mapping[str, Plan] | StraitError, said: str
) -> None:
    class Reader(nullcontext[Any]):
        def __init__(self, _: object, cluster: str, link: str, *, follow: object) -> None:
            super().__init__(self)
            assert (cluster, link) == ("a", "l")
            self.plans = plans

        def catch_up(self) -> None:
            if isinstance(plans, StraitError):
                raise plans

    monkeypatch.setattr(exchanged, "StateReader", Reader)
    error = link_state.no_plan(ENDS, "l")
    assert f"link l: {said}" in str(error)


@pytest.mark.parametrize(("copies", "raises"), [("skip", True), ("forward", True), ("all", False)])
def test_a_link_that_skips_copies_is_not_audited_while_a_link_into_its_source_is_unknown(
    monkeypatch: pytest.MonkeyPatch, copies: str, raises: bool
) -> None:
    """Its records would be missing in the result, and a repair would write them."""
    topic = PLAN.topics[0].model_copy(update={"policy": TopicPolicy.model_validate({"copies": copies})})
    plans = {"default": PLAN.model_copy(update={"topics": (topic,)})}
    unreadable = Registrations()
    unreadable.apply(b'{"producer_id":1234567890}', b"garbage", 3)
    state = link_state.LinkState(plans, {}, {}, {}, {}, Registrations(), unreadable)
    reader = SimpleNamespace(plans=plans, catch_up=lambda: None)
    observed = SimpleNamespace(partitions=lambda _: 0, plan=lambda *_: "planned")
    monkeypatch.setattr(observing, "StateReader", lambda *_, **__: nullcontext(reader))
    monkeypatch.setattr(observing, "Observed", SimpleNamespace(of=lambda *_, **__: observed))
    monkeypatch.setattr(observing, "read_link", lambda *_: state)
    if not raises:
        assert observing.plan_link(ENDS, "l", AuditRequest(), "x") == "planned"
        return
    with pytest.raises(StateError, match="cluster a: reading which links write there: the record at offset 3") as error:
        observing.plan_link(ENDS, "l", AuditRequest(), "x")
    assert "tombstone" in error.value.hint
