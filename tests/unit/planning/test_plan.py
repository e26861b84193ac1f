"""From facts to a plan: equal facts change nothing, and everything that is not copied says why."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.config.links import Link
from strait.errors import ConfigError
from strait.model import ClusterFacts, TopicFacts, TopicPartition
from strait.planning.plan.planner import Proposal, Runs, compose, survey
from strait.planning.review.text import LINES_MOST, proposal_data, proposal_text, shortened
from strait.planning.topic_sync.retirement import Retirement
from strait.planning.topic_sync.sync import TopicSync
from strait.planning.topics.retained import retained
from strait.planning.topics.start_offsets import AtOffset, StartOffsets
from strait.reasons import Reason
from strait.state.schema import OffsetMapping, Plan

PRODUCER_ID = 4711


def link(**settings: Any) -> Link:
    base = {"source": "a", "destination": "b", "topics": {"regex": [".*"]}, "groups": {"default": {"slots": 2}}}
    return Link.model_validate(base | settings, strict=False)


def cluster(name: str, topics: dict[str, int], generation: str = "1", **configs: str) -> ClusterFacts:
    facts = {
        topic: TopicFacts(topic, f"{name}-{topic}-{generation}", partitions, configs=configs)
        for topic, partitions in topics.items()
    }
    return ClusterFacts(name, f"cluster-{name}", facts)


def propose(
    settings: Link,
    source: ClusterFacts,
    destination: ClusterFacts,
    previous: Plan | None = None,
    runs: Runs | None = None,
    refused: dict[str, str] | None = None,
) -> Proposal:
    plans = [] if previous is None else [previous]
    found = survey("a-to-b", settings, source, destination, runs or {}, refused, plans)
    starts = StartOffsets(dict.fromkeys(found.new, 100), dict.fromkeys((new.target for new in found.new.values()), 7))
    return compose(settings, found, starts, {} if previous is None else {"default": previous}, stopped=False)


def publish(
    proposal: Proposal, runs: Runs | None = None
) -> tuple[Plan, dict[tuple[str, int], tuple[OffsetMapping, ...]]]:
    assert proposal.draft is not None
    version = 1 if proposal.previous is None else proposal.previous.version + 1
    plan = proposal.draft.as_plan(link="a-to-b", group="default", version=version, producer_id=PRODUCER_ID, now_ms=1)
    first = {(run.topic, run.partition): (run,) for run in proposal.first_runs(1)}
    assert not first.keys() & (runs or {}).keys()
    return plan, {**(runs or {}), **first}


def reasons(proposal: Proposal) -> dict[str, tuple[str, tuple[int, ...]]]:
    assert proposal.draft is not None
    return {item.topic: (item.reason, item.partitions) for item in proposal.draft.waiting}


def test_a_missing_topic_is_created_with_the_partitions_of_its_source_and_planned_later() -> None:
    proposal = propose(link(replication_factor=3), cluster("a", {"orders": 6}), cluster("b", {}))
    (create,) = proposal.create
    assert (create.topic, create.partitions, create.replication_factor) == ("orders", 6, 3)
    assert proposal.draft is not None and proposal.draft.topics == ()


def test_a_created_topic_keeps_timestamps_and_takes_what_its_records_need() -> None:
    configs = {"max.message.bytes": "5000000", "retention.ms": "-1", "cleanup.policy": "delete"}
    (create,) = propose(link(), cluster("a", {"orders": 1}, **configs), cluster("b", {})).create
    assert dict(create.configs) == {
        "max.message.bytes": "5000000",
        "retention.ms": "-1",
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
    }


def test_topics_are_named_by_the_naming_policy() -> None:
    prefix = link(naming={"policy": "prefix", "prefix": "a."})
    proposal = propose(prefix, cluster("a", {"orders": 1, "clicks": 1}), cluster("b", {"a.orders": 1}))
    assert [create.topic for create in proposal.create] == ["a.clicks"]
    assert proposal.draft is not None and [topic.destination for topic in proposal.draft.topics] == ["a.orders"]


def test_a_partition_that_is_new_to_the_link_gets_its_first_run() -> None:
    proposal = propose(link(), cluster("a", {"orders": 1}), cluster("b", {"orders": 1}))
    (run,) = proposal.first_runs(now_ms=5)
    assert run == OffsetMapping(
        topic="orders",
        partition=0,
        destination="orders",
        source_id="a-orders-1",
        destination_id="b-orders-1",
        source_base=100,
        destination_base=7,
        sequence_base=0,
        sequence_end=0,
        checkpoint_at_ms=5,
    )


@given(
    st.dictionaries(st.sampled_from("pqrst"), st.integers(1, 8)),
    st.dictionaries(st.sampled_from("pqrst"), st.integers(1, 8)),
    st.integers(1, 4),
)
def test_every_selected_partition_has_a_slot_or_a_reason_and_planning_again_changes_nothing(
    source_topics: dict[str, int], destination_topics: dict[str, int], slots: int
) -> None:
    settings = link(create_topics=False, groups={"default": {"slots": slots}})
    source, destination = cluster("a", source_topics), cluster("b", destination_topics)
    proposal = propose(settings, source, destination)
    plan, runs = publish(proposal)
    copied = {(t.source, n) for t in plan.topics for n, slot in enumerate(t.slots) if slot is not None}
    waiting = {
        (item.topic, n) for item in plan.waiting for n in item.partitions or range(source_topics.get(item.topic, 0))
    }
    assert copied | waiting == {(topic, n) for topic, count in source_topics.items() for n in range(count)}
    assert not copied & waiting
    assert runs.keys() == copied
    again = propose(settings, source, destination, plan, runs)
    assert again.empty
    assert again.first_runs(2) == []


def test_a_new_topic_leaves_every_other_partition_in_its_slot() -> None:
    source, destination = cluster("a", {"p": 5}), cluster("b", {"p": 5})
    plan, runs = publish(propose(link(), source, destination))
    more = propose(link(), cluster("a", {"p": 5, "aa": 3}), cluster("b", {"p": 5, "aa": 3}), plan, runs)
    after, _ = publish(more, runs)
    assert after.version == 2
    assert next(t for t in after.topics if t.source == "p") == plan.topics[0]


@pytest.mark.parametrize(
    ("settings", "destination", "expected"),
    [
        ({"create_topics": False}, cluster("b", {}), ("destination_missing", (0, 1, 2, 3))),
        (
            {"create_topics": False},
            cluster("b", {"orders": 2}),
            ("destination_has_fewer_partitions", (2, 3)),
        ),
        (
            {},
            cluster("b", {"orders": 4}, **{"message.timestamp.type": "LogAppendTime"}),
            ("destination_log_append_time", ()),
        ),
    ],
)
def test_an_unfit_destination_is_a_reason(settings: Any, destination: ClusterFacts, expected: Any) -> None:
    assert reasons(propose(link(**settings), cluster("a", {"orders": 4}), destination))["orders"] == expected


def test_fewer_partitions_are_told_with_both_numbers_and_the_others_are_copied() -> None:
    refused = {"orders": "POLICY_VIOLATION"}
    proposal = propose(link(), cluster("a", {"orders": 4}), cluster("b", {"orders": 2}), refused=refused)
    assert proposal.draft is not None
    assert proposal.draft.topics[0].slots == (0, 1, None, None)
    detail = proposal.draft.waiting[0].detail
    assert detail == "topic orders on b has 2 partitions, on a it has 4: adding them: POLICY_VIOLATION"


def test_a_topic_that_could_not_be_created_waits_with_the_cause_and_stops_no_other() -> None:
    proposal = propose(
        link(), cluster("a", {"bad": 1, "good": 1}), cluster("b", {"good": 1}), refused={"bad": "POLICY_VIOLATION"}
    )
    assert reasons(proposal) == {"bad": ("destination_missing", (0,))}
    assert proposal.draft is not None and "POLICY_VIOLATION" in proposal.draft.waiting[0].detail
    assert [topic.source for topic in proposal.draft.topics] == ["good"]


def test_a_copy_that_lacks_partitions_is_given_them_and_nothing_waits_for_that() -> None:
    proposal = propose(link(), cluster("a", {"orders": 4}), cluster("b", {"orders": 2}))
    assert proposal.draft is not None and proposal.draft.waiting == ()
    assert proposal.draft.topics[0].slots == (0, 1, None, None)


@pytest.mark.parametrize("end", ["source", "destination"])
def test_a_topic_that_a_cluster_does_not_tell_of_waits_and_stops_no_other(end: str) -> None:
    facts = {
        "source": cluster("a", {"orders": 2, "clicks": 1}),
        "destination": cluster("b", {"orders": 2, "clicks": 1}),
    }
    denied = replace(facts[end].topics["orders"], denied="no right")
    facts[end] = replace(facts[end], topics={**facts[end].topics, "orders": denied})
    proposal = propose(link(), facts["source"], facts["destination"])
    assert reasons(proposal) == {"orders": (f"{end}_denied", ())}
    assert [new.topic for new in proposal.new] == ["clicks"]
    unhomed = propose(link(), facts["source"], cluster("b", {"clicks": 1}))
    assert [item.topic for item in unhomed.create] == ([] if end == "source" else ["orders"])


@pytest.mark.parametrize("end", ["source", "destination"])
def test_a_topic_that_is_copied_goes_on_by_the_plan_when_its_configurations_may_not_be_read(end: str) -> None:
    settings = link(configs={"sync": True})
    source = cluster("a", {"orders": 2}, **{"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"})
    destination = cluster("b", {"orders": 2}, **{"max.message.bytes": "54321"})
    copy = replace(destination.topics["orders"], topic_configs={"cleanup.policy": "compact"})
    destination = replace(destination, topics={"orders": copy})
    plan, runs = publish(propose(settings, source, destination))
    facts = {"source": source, "destination": destination}
    silent = replace(facts[end].topics["orders"], configs={}, topic_configs={}, denied="no right")
    facts[end] = replace(facts[end], topics={"orders": silent})
    known = retained(facts["source"], facts["destination"], [plan])
    assert propose(settings, *known, plan, runs).empty
    facts[end] = replace(facts[end], topics={"orders": replace(silent, topic_id="another")})
    known = retained(facts["source"], facts["destination"], [plan])
    assert reasons(propose(settings, *known, plan, runs)) == {"orders": (f"{end}_denied", ())}


def test_a_topic_that_is_forgotten_waits_no_longer_and_a_kept_copy_says_why() -> None:
    source, destination = cluster("a", {"orders": 1, "clicks": 1}), cluster("b", {"orders": 1, "clicks": 1})
    plan, runs = publish(propose(link(), source, destination))
    found = survey("a-to-b", link(), cluster("a", {}), cluster("b", {"clicks": 1}), runs)
    verdict = Retirement(forget=runs["orders", 0], kept={"clicks": "it is in use"})
    after = compose(
        link(), found, StartOffsets(), {"default": plan}, stopped=False, sync=TopicSync(retirement=verdict), now_ms=9
    )
    assert after.draft is not None
    (left,) = after.draft.waiting
    assert (left.topic, left.since_ms) == ("clicks", 9)
    assert left.detail.endswith("destination topic not deleted: it is in use")


def test_a_named_topic_that_is_not_there_waits_for_the_source() -> None:
    proposal = propose(link(topics={"include": ["nothing"]}), cluster("a", {}), cluster("b", {}))
    assert reasons(proposal) == {"nothing": ("source_missing", ())}


@pytest.mark.parametrize(
    ("source", "destination", "reason"),
    [("2", "1", "source_recreated"), ("1", "2", "destination_recreated"), ("2", "2", "source_recreated")],
)
def test_a_recreated_topic_is_never_copied_on(source: str, destination: str, reason: str) -> None:
    plan, runs = publish(propose(link(), cluster("a", {"orders": 2}), cluster("b", {"orders": 2})))
    proposal = propose(
        link(), cluster("a", {"orders": 2}, source), cluster("b", {"orders": 2}, destination), plan, runs
    )
    assert reasons(proposal) == {"orders": (reason, (0, 1))}
    assert proposal.draft is not None and proposal.draft.topics[0].slots == (None, None)
    assert proposal.first_runs(1) == []


def test_a_recreated_topic_is_noted_once_and_again_when_it_is_decided_about() -> None:
    def looked_at(plan: Plan, runs: Runs, **rule: str) -> Proposal:
        settings = link(topics={"regex": [".*"], "rules": [{"match": "orders", **rule}]})
        return propose(settings, cluster("a", {"orders": 2}), cluster("b", {"orders": 2}, "2"), plan, runs)

    plan, runs = publish(propose(link(), cluster("a", {"orders": 2}), cluster("b", {"orders": 2})))
    found = looked_at(plan, runs)
    assert [(loss.partition, loss.cause, loss.action) for loss in found.losses("a-to-b", 1)] == [
        (0, "destination_recreated", "halted"),
        (1, "destination_recreated", "halted"),
    ]
    plan, runs = publish(found, runs)
    again = looked_at(plan, runs)
    assert again.empty
    assert again.losses("a-to-b", 1) == []
    decided = looked_at(plan, runs, on_loss="restart")
    assert [(loss.partition, loss.action) for loss in decided.losses("a-to-b", 1)] == [
        (0, "restarted"),
        (1, "restarted"),
    ]
    assert [(run.destination_id, run.sequence_base) for run in decided.first_runs(1)] == [("b-orders-2", 0)] * 2
    assert decided.draft is not None and decided.draft.topics[0].slots == (0, 1)


def test_a_partition_that_is_added_to_a_copied_topic_begins_with_its_first_record() -> None:
    settings = link(start="latest")
    _, runs = publish(propose(settings, cluster("a", {"orders": 2}), cluster("b", {"orders": 2})))
    source, destination = cluster("a", {"orders": 3, "new": 1}), cluster("b", {"orders": 3, "new": 1})
    found = survey("a-to-b", settings, source, destination, runs)
    assert {tp: new.fresh.begin for tp, new in found.new.items()} == {("orders", 2): "earliest", ("new", 0): "latest"}


def test_an_offset_that_the_source_does_not_hold_is_a_reason() -> None:
    source, destination = cluster("a", {"orders": 2}), cluster("b", {"orders": 2})
    found = survey("a-to-b", link(start={0: 5}), source, destination, {})
    first, second = sorted(found.new)
    assert (found.new[first].fresh.begin, found.new[second].fresh.begin) == (AtOffset(5), "earliest")
    starts = StartOffsets({second: 0}, {first: 0, second: 0}, out_of_range={first: "it holds 7 to 9"})
    proposal = compose(link(), found, starts, {}, stopped=False)
    assert reasons(proposal) == {"orders": ("start_out_of_range", (0,))}
    assert proposal.draft is not None and proposal.draft.topics[0].slots == (None, 0)


def test_a_rule_or_a_budget_that_changes_is_a_new_plan() -> None:
    source, destination = cluster("a", {"orders": 2}), cluster("b", {"orders": 2})
    plan, runs = publish(propose(link(), source, destination))
    rules = [{"match": "orders", "on_refused": "quarantine", "class": "gold"}]
    block = {"regex": [".*"], "rules": rules, "budget": {"bytes_per_second": 9, "classes": {"gold": 5}}}
    ruled = propose(link(topics=block), source, destination, plan, runs)
    text = proposal_text(ruled)
    assert "~ changes   orders: on_refused halt -> quarantine, topic_class none -> gold" in text
    assert "~ budget    link 9 bytes/s, gold 5 bytes/s" in text
    after, _ = publish(ruled, runs)
    assert after.topics[0].policy.on_refused == "quarantine"
    assert after.topics[0].slots == plan.topics[0].slots
    assert [(budget.topic_class, budget.slot_shares) for budget in after.budgets] == [
        ("", (0.5, 0.5)),
        ("gold", (0.5, 0.5)),
    ]


def test_another_name_for_a_topic_that_was_copied_is_refused() -> None:
    plan, runs = publish(propose(link(), cluster("a", {"orders": 1}), cluster("b", {"orders": 1})))
    renamed = link(naming={"policy": "prefix", "prefix": "x."})
    proposal = propose(renamed, cluster("a", {"orders": 1}), cluster("b", {"x.orders": 1}), plan, runs)
    assert reasons(proposal) == {"orders": ("naming_changed", (0,))}


def test_a_partition_whose_start_cannot_be_looked_up_waits_and_stops_no_other() -> None:
    found = survey("a-to-b", link(), cluster("a", {"orders": 3}), cluster("b", {"orders": 3}), {})
    lost, unhomed = TopicPartition("orders", 1), TopicPartition("orders", 2)
    starts = StartOffsets({tp: 0 for tp in found.new if tp != lost}, {tp: 0 for tp in found.new if tp != unhomed})
    starts = replace(starts, source_failures={lost: "no leader"}, destination_failures={unhomed: "no leader"})
    proposal = compose(link(), found, starts, {}, stopped=False)
    assert proposal.draft is not None
    assert [(item.reason, item.partitions) for item in proposal.draft.waiting] == [
        ("source_leaderless", (1,)),
        ("destination_leaderless", (2,)),
    ]
    assert proposal.draft.topics[0].slots == (0, None, None)
    assert [run.partition for run in proposal.first_runs(1)] == [0]


def test_two_names_for_one_cluster_are_refused_where_names_stay_the_same() -> None:
    source = cluster("a", {"orders": 1})
    with pytest.raises(ConfigError, match=r"source a and destination b are the same Kafka cluster \(cluster-a\)"):
        propose(link(), source, replace(source, name="b"))


def test_stopping_a_link_is_a_change_of_its_plan() -> None:
    source, destination = cluster("a", {"orders": 1}), cluster("b", {"orders": 1})
    plan, runs = publish(propose(link(), source, destination))
    found = survey("a-to-b", link(), source, destination, runs)
    stopped = compose(link(), found, StartOffsets(), {"default": plan}, stopped=True)
    assert stopped.draft is not None and stopped.draft.stopped


@pytest.mark.parametrize("seen_before", [False, True])
@pytest.mark.parametrize("on_loss", ["halt", "continue", "restart"])
def test_a_destination_that_was_recreated_after_the_map_was_lost_may_start_again(
    on_loss: str, seen_before: bool
) -> None:
    """Nothing of what was copied is left, so a first run copies nothing twice; but only if an operator says so. Plans
    remember it, whichever id they have published since."""
    source = cluster("a", {"orders": 2})
    plan, _ = publish(propose(link(), source, cluster("b", {"orders": 2})))
    new = cluster("b", {"orders": 2}, "2")
    if seen_before:
        halted = compose(
            link(), survey("l", link(), source, new, {}, None, [plan]), StartOffsets(), {"default": plan}, stopped=False
        )
        plan, _ = publish(halted)
        assert plan.topics[0].destination_id == new.topics["orders"].topic_id
    ruled = link(topics={"regex": [".*"], "rules": [{"match": "orders", "on_loss": on_loss}]})
    found = survey("l", ruled, source, new, {}, None, [plan])
    assert found.copyable == ()
    assert len(found.new) == (2 if on_loss == "restart" else 0)
    assert {change.reason for change in found.halted.values()} <= {Reason.DESTINATION_RECREATED}
    assert len(found.halted) + len(found.new) == 2


def test_without_the_map_a_destination_that_is_the_same_is_left_to_the_slot() -> None:
    source, destination = cluster("a", {"orders": 2}), cluster("b", {"orders": 2})
    plan, _ = publish(propose(link(), source, destination))
    ruled = link(topics={"regex": [".*"], "rules": [{"match": "orders", "on_loss": "restart"}]})
    found = survey("l", ruled, source, destination, {}, None, [plan])
    assert [partition.partition for partition in found.copyable] == [0, 1]
    assert not found.new and not found.halted


def test_a_proposal_is_told_in_words_and_in_data() -> None:
    source = cluster("a", {"orders": 4, "new": 2, "tmp-1": 1})
    rules = [{"match": "orders", "create": False}]
    settings = link(topics={"regex": ["orders|new|tmp.*"], "exclude": ["tmp-.*"], "rules": rules})
    proposal = propose(settings, source, cluster("b", {"orders": 2}))
    text = proposal_text(proposal)
    assert "+ creates   new: 2 partitions" in text
    assert "+ copies    orders 0-1" in text
    assert "= waits     orders 2-3: destination_has_fewer_partitions: " in text
    assert "= left out  tmp-1: `topics.exclude` has 'tmp-.*'" in text
    assert text.endswith("\nPlan: 2 to add, 0 to change, 0 to remove.")
    assert proposal_data(proposal)["changes"]["added"] == [("orders", 0), ("orders", 1)]


def test_a_log_of_thousands_of_topics_has_some_lines_of_each_kind_and_their_number():
    topics = {f"t{number}": 1 for number in range(3000)}
    text = proposal_text(propose(link(), cluster("a", topics), cluster("b", {})))
    lines = shortened(text)
    assert len(lines) < 4 * LINES_MOST
    assert sum("creates" in line for line in lines) == LINES_MOST + 1
    assert any(line.startswith("and 2,980 more of 'creates'") for line in lines)
    assert shortened("plan 3: 1 partition") == ["plan 3: 1 partition"]
