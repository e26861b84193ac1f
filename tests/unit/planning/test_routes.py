"""Topics that are divided among several destination topics: what is planned, and what a changed division does."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from strait.config.links import Link
from strait.config.naming import Names
from strait.consumer_groups.translating import lowest_of_routes, untouched_routes
from strait.errors import ConfigError
from strait.model import ClusterFacts, TopicAcl, TopicPartition
from strait.planning.plan.pauses import Scope
from strait.planning.plan.planner import Proposal, Runs, survey
from strait.planning.review.effects import effects
from strait.planning.review.withholding import unapproved_of
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.up_to import behind
from strait.planning.topic_sync.acls import acl_changes
from strait.planning.topics.routes import with_routes
from strait.planning.waves import Wave
from strait.reasons import Reason
from strait.state.schema import OffsetMapping, Plan
from strait.state.translation import Translation
from unit.planning.test_plan import cluster, link, publish, reasons
from unit.planning.test_plan import propose as propose_of

BIG, REST = {"when": "v.amount > 800", "to": "big"}, {"to": "rest"}
FORMAT = {"value": "json", "schema": "id BIGINT, amount DOUBLE"}
SOURCE, COPY = cluster("a", {"customers": 2}), cluster("b", {"big": 2, "rest": 2, "more": 2})
BIG_ROUTE, REST_ROUTE = "customers→big", "customers→rest"


def dividing(*routes: dict[str, str], **settings: Any) -> Link:
    transform = {"format": FORMAT, "route": list(routes)} | settings.pop("transform", {})
    rules = [{"match": "customers", "transform": transform} | settings.pop("rule", {})]
    return link(topics={"regex": [".*"], "rules": rules}, **settings)


def propose(
    settings: Link,
    source: ClusterFacts = SOURCE,
    copy: ClusterFacts = COPY,
    plan: Plan | None = None,
    runs: Runs | None = None,
) -> Proposal:
    known = {topic for topic, _ in runs or {}} | (set() if plan is None else {topic.source for topic in plan.topics})
    return propose_of(settings, with_routes(source, settings.topics, known), copy, plan, runs)


def planned(proposal: Proposal) -> dict[str, str]:
    assert proposal.draft is not None
    topics = proposal.draft.topics
    return {topic.source: topic.destination for topic in topics if any(slot is not None for slot in topic.slots)}


def digests(plan: Plan) -> dict[str, str]:
    return {topic.source: topic.policy.transform_digest for topic in plan.topics}


def skipped(proposal: Proposal) -> dict[str, str]:
    return {skip.topic: skip.detail for skip in proposal.survey.selection.skipped}


def test_each_route_is_a_topic_with_its_condition_and_the_negation_of_those_before() -> None:
    proposal = propose(dividing(BIG, {"when": "v.id > 5", "to": "more"}, REST, transform={"where": "v.id <> 7"}))
    assert planned(proposal) == {BIG_ROUTE: "big", "customers→more": "more", REST_ROUTE: "rest"}
    plan, runs = publish(proposal)
    made = {topic.destination: topic.policy.transform for topic in plan.topics}
    conditions = {name: (one.where, one.when, one.unless) for name, one in made.items() if one is not None}
    assert conditions == {
        "big": ("v.id <> 7", "v.amount > 800", ()),
        "more": ("v.id <> 7", "v.id > 5", ("v.amount > 800",)),
        "rest": ("v.id <> 7", "", ("v.amount > 800", "v.id > 5")),
    }
    assert len(set(digests(plan).values())) == 3
    assert {run.transform for run in runs[BIG_ROUTE, 1]} == {digests(plan)[BIG_ROUTE]}
    assert {topic.source_id for topic in plan.topics} == {"a-customers-1"}
    again = propose(
        dividing(BIG, {"when": "v.id > 5", "to": "more"}, REST, transform={"where": "v.id <> 7"}), plan=plan, runs=runs
    )
    assert again.empty and plan.transformed == {BIG_ROUTE, "customers→more", REST_ROUTE}


def test_destination_topics_are_created_with_the_partitions_of_the_source() -> None:
    proposal = propose(dividing(BIG, REST), copy=cluster("b", {}))
    assert [(one.topic, one.source, one.partitions) for one in proposal.create] == [
        ("big", BIG_ROUTE, 2),
        ("rest", REST_ROUTE, 2),
    ]
    fewer = propose(dividing(BIG, REST, create_topics=False), copy=cluster("b", {"big": 1, "rest": 2}))
    assert reasons(fewer) == {BIG_ROUTE: (Reason.DESTINATION_HAS_FEWER_PARTITIONS, (1,))}


def test_only_the_first_route_notes_what_cannot_be_parsed_and_all_stop_there() -> None:
    def actions(malformed: str) -> list[str]:
        plan, _ = publish(propose(dividing(BIG, REST, transform={"malformed": malformed})))
        return [topic.policy.transform.malformed for topic in plan.topics if topic.policy.transform is not None]

    assert actions("quarantine") == ["quarantine", "omit"] and actions("stop") == ["stop", "stop"]
    digest = [
        digests(publish(propose(dividing(BIG, REST, transform={"malformed": it})))[0]) for it in ("quarantine", "stop")
    ]
    assert digest[0] == digest[1]


def test_a_destination_of_another_topic_is_refused_and_both_are_named() -> None:
    source = cluster("a", {"customers": 2, "big": 1})
    first = propose(dividing(BIG, REST), source)
    assert planned(first) == {REST_ROUTE: "rest"}
    assert skipped(first)["big"] == f"its destination topic big is that of topic {BIG_ROUTE}, too"
    plan, runs = publish(propose(link(), cluster("a", {"big": 1})))
    later = propose(dividing(BIG, REST), source, plan=plan, runs=runs)
    assert planned(later) == {"big": "big", REST_ROUTE: "rest"}, "what is copied goes on"
    assert skipped(later)[BIG_ROUTE] == "its destination topic big is that of topic big, too"


@pytest.mark.parametrize(
    ("to", "match"),
    [("x" * 241 + r"\1", "(customers)"), (r"\1", "customers()"), (r"\2.a-to-b.map", "customers|(.*)(strait)")],
)
def test_a_group_that_makes_no_name_of_a_topic_makes_no_route(to: str, match: str) -> None:
    source = cluster("a", {"strait": 1}) if "strait" in match else SOURCE
    (topic,) = source.topics
    proposal = propose(dividing({"when": "v.id > 1", "to": to}, REST, rule={"match": match}), source)
    assert planned(proposal) == {f"{topic}→rest": "rest"}
    (why,) = (why for name, why in skipped(proposal).items() if name.startswith(f"{topic}→"))
    assert "would be invalid" in why


def test_names_come_from_the_source_topics_name_and_two_routes_never_share_one() -> None:
    rules = [{"match": "(c.*)", "transform": {"route": [{"when": "key IS NULL", "to": r"\1.none"}, {"to": r"x\1"}]}}]
    names = Names(link(topics={"regex": [".*"], "rules": rules}))
    assert names.destination("customers→customers.none") == "customers.none"
    assert names.destination("customers→xcustomers") == "xcustomers"
    assert names.destination("customers") is names.destination("customers→other") is None
    with pytest.raises(ValueError, match="does not fit"):
        link(topics={"rules": [{"match": "c", "transform": {"route": [{"when": "true", "to": r"\1"}, {"to": "x"}]}}]})
    rules[0]["transform"] = {"route": [{"when": "key IS NULL", "to": r"\1"}, {"to": "customers"}]}
    proposal = propose(link(topics={"regex": [".*"], "rules": rules}))
    assert planned(proposal) == {} and "two routes of topic customers go to customers" in str(skipped(proposal))


def test_a_route_behind_the_others_changes_none_of_them_and_begins_by_the_rules_start() -> None:
    more = {"when": "v.id > 5", "to": "more"}
    plan, runs = publish(propose(dividing(BIG, {"when": "v.id < 3", "to": "rest"})))
    settings = dividing(BIG, {"when": "v.id < 3", "to": "rest"}, more, rule={"start": "latest"})
    changed = propose(settings, plan=plan, runs=runs)
    assert planned(changed).keys() == {BIG_ROUTE, REST_ROUTE, "customers→more"}
    assert digests(publish(changed, runs)[0]).items() >= digests(plan).items()
    (effect,) = effects(settings, changed)
    assert (effect.verb, effect.subject, effect.detail) == ("copies", "customers→more", "from latest")


def test_a_route_before_others_halts_those_that_lose_records_to_it() -> None:
    plan, runs = publish(propose(dividing(BIG, REST)))
    settings = dividing(BIG, {"when": "v.id > 5", "to": "more"}, REST)
    changed = propose(settings, plan=plan, runs=runs)
    assert planned(changed).keys() == {BIG_ROUTE, "customers→more"}
    assert reasons(changed) == {REST_ROUTE: (Reason.TRANSFORM_CHANGED, (0, 1))}
    back = propose(dividing(BIG, REST), plan=publish(changed, runs)[0], runs=runs)
    assert planned(back).keys() == {BIG_ROUTE, REST_ROUTE}


def test_a_removed_route_is_left_and_its_destination_topic_stays() -> None:
    plan, runs = publish(propose(dividing(BIG, REST)))
    settings = dividing(BIG, delete_copies_after_seconds=0)
    changed = propose(settings, plan=plan, runs=runs)
    assert planned(changed) == {BIG_ROUTE: "big"} and changed.draft is not None
    assert [item.source for item in changed.draft.left] == [REST_ROUTE] and not changed.draft.waiting
    assert [(one.verb, one.subject) for one in effects(settings, changed)] == [("leaves", REST_ROUTE)]
    again = propose(dividing(BIG, REST), plan=publish(changed, runs)[0], runs=runs)
    assert planned(again).keys() == {BIG_ROUTE, REST_ROUTE} and not again.new, "it goes on where it stopped"


def test_records_of_a_copy_and_of_a_route_do_not_meet_in_one_topic() -> None:
    """Whichever was first: the one would get records that its condition leaves out."""
    copy = cluster("b", {"customers": 2, "big": 2})
    plan, runs = publish(propose(link(), copy=copy))
    settings = dividing(BIG, {"to": "customers"})
    divided = propose(settings, copy=copy, plan=plan, runs=runs)
    assert planned(divided) == {BIG_ROUTE: "big"}
    assert reasons(divided)["customers→customers"] == (Reason.TRANSFORM_CHANGED, (0, 1))
    assert not divided.actions, "nothing is deleted"
    plan, runs = publish(propose(settings, copy=copy))
    whole = propose(link(), copy=copy, plan=plan, runs=runs)
    assert planned(whole) == {} and reasons(whole) == {"customers": (Reason.TRANSFORM_CHANGED, (0, 1))}


def test_without_approval_a_topic_is_not_divided() -> None:
    plan, runs = publish(propose(link(), copy=cluster("b", {"customers": 2})))
    settings = dividing(BIG, REST, approval="required")
    whole = propose(settings, copy=cluster("b", {"customers": 2}), plan=plan, runs=runs)
    left_out = unapproved_of(settings, whole)
    assert left_out is not None and left_out.names == {"customers": "customers"}
    found = survey(
        "a-to-b", settings, with_routes(SOURCE, settings.topics, ()), COPY, runs, {}, [plan], unapproved=left_out
    )
    assert list(found.selection.names) == ["customers"]


def test_a_source_topic_that_is_gone_is_missed_under_each_name() -> None:
    plan, runs = publish(propose(dividing(BIG, REST)))
    gone = propose(dividing(BIG, REST), cluster("a", {}), plan=plan, runs=runs)
    assert reasons(gone) == dict.fromkeys((BIG_ROUTE, REST_ROUTE), (Reason.SOURCE_MISSING, ()))


def test_readers_of_the_source_topic_may_read_every_route() -> None:
    for name, pattern in ("customers", "LITERAL"), ("cust", "PREFIXED"):
        acls = frozenset({TopicAcl(name, pattern, "User:x", "*", "READ", "ALLOW")})
        changes = acl_changes(
            {BIG_ROUTE: "big", REST_ROUTE: "rest"},
            replace(SOURCE, acls=acls),
            replace(COPY, acls=frozenset()),
            (),
            remove=False,
        )
        found = {(change.acl.name, change.acl.pattern) for change in changes}
        assert found == {("big", "LITERAL"), ("rest", "LITERAL")}


def test_the_source_topics_name_stands_for_all_of_its_routes() -> None:
    topics = {BIG_ROUTE, REST_ROUTE, "orders"}
    places = [TopicPartition(BIG_ROUTE, 0), TopicPartition(REST_ROUTE, 0), TopicPartition("orders", 0)]

    def covered(text: str) -> list[TopicPartition]:
        scope = Scope.parse(text).among(topics)
        return [place for place in places if scope.covers(place)]

    assert covered("customers") == covered("customers-0") == places[:2]
    assert covered("customers->big") == covered(BIG_ROUTE) == places[:1]
    assert covered("customers-1") == []
    with pytest.raises(ConfigError, match="no such topic"):
        covered("big")
    assert Wave(("customers",)).takes(BIG_ROUTE) and not Wave(("orders",)).takes(BIG_ROUTE)


def test_a_source_partition_is_reached_once_all_of_its_routes_are() -> None:
    def row(topic: str, position: int) -> PartitionStatus:
        return PartitionStatus(topic, 0, "", 0, "copying", "", "", position=position)

    ends = {TopicPartition("customers", 0): 10}
    rows: Mapping[str, list[PartitionStatus]] = {
        "behind": [row(BIG_ROUTE, 10), row(REST_ROUTE, 9)],
        "reached": [row(BIG_ROUTE, 10), row(REST_ROUTE, 10)],
    }
    assert behind(ends, rows["behind"]) == {TopicPartition("customers", 0): "copying"}
    assert behind(ends, rows["reached"]) == {}


def test_a_group_that_returns_continues_at_the_lowest_of_its_routes() -> None:
    sources = {"big": BIG_ROUTE, "rest": REST_ROUTE, "orders": "orders"}

    def back(copy: str, offset: int | None, partition: int = 0) -> Translation:
        return Translation(copy, partition, 5, sources[copy].partition("→")[0], offset, "exact")

    given = [back("big", 100), back("rest", 40), back("orders", 9), back("big", 7, partition=1)]
    found = lowest_of_routes(given, sources)
    assert [one.to_offset for one in found] == [40, 40, 9, 7]
    assert "the lowest of its routes, that of rest; this one alone: 100" in found[0].detail
    unknown = lowest_of_routes([back("big", 100), replace(back("rest", None), fit="unknown")], sources)
    assert [(one.to_offset, one.fit) for one in unknown] == [(None, "unknown")] * 2


def test_a_route_on_which_a_group_has_committed_nothing_counts_as_not_consumed() -> None:
    sources = {"big": BIG_ROUTE, "rest": REST_ROUTE, "orders": "orders"}
    committed = [
        TopicPartition("big", 0),
        TopicPartition("rest", 0),
        TopicPartition("big", 1),
        TopicPartition("orders", 2),
    ]
    assert untouched_routes(committed, sources) == [TopicPartition("rest", 1)]
    assert untouched_routes([TopicPartition("orders", 0)], sources) == []


def test_a_link_without_routes_is_planned_from_the_facts_as_they_are() -> None:
    assert with_routes(SOURCE, link().topics, ["customers"]) is SOURCE
    run = OffsetMapping(
        topic=BIG_ROUTE, partition=0, destination="big", source_id="a-customers-1", destination_id="b-big-1",
        source_base=0, destination_base=0, sequence_base=0, sequence_end=0, checkpoint_at_ms=1,
    )  # fmt: skip
    kept = with_routes(SOURCE, link().topics, [BIG_ROUTE])
    assert kept.topics[BIG_ROUTE].topic_id == "a-customers-1", "it is deselected, not deleted"
    assert planned(propose(link(), copy=cluster("b", {"customers": 2, "big": 2}), runs={(BIG_ROUTE, 0): (run,)})) == {
        "customers": "customers"
    }
