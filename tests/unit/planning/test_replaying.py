"""Where quarantined records may go: never where they would stop the copy."""

import pytest

from strait.errors import ConfigError
from strait.model import TopicFacts
from strait.state.quarantine_log import Entry
from strait.state.quarantine_replay import targets
from strait.state.schema import Plan, PlannedTopic, TopicPolicy


def entry(topic: str = "orders", partition: int = 0, destination: str = "dr.orders") -> Entry:
    return Entry(0, topic, partition, 5, 1, destination, "batch_refused", "", 1, 10)


def plan(on_foreign: str) -> Plan:
    policy = TopicPolicy.model_validate({"on_foreign": on_foreign})
    topic = PlannedTopic(
        source="orders", destination="dr.orders", source_id="s", destination_id="d", slots=(0, 0), policy=policy
    )
    return Plan(link="l", group="default", version=1, producer_id=1, slots=1, topics=(topic,), published_at_ms=1)


def cluster(**partitions: int) -> dict[str, TopicFacts]:
    named = {name.replace("_", "."): count for name, count in partitions.items()}
    return {name: TopicFacts(name, "id", count) for name, count in named.items()}


def refusal(*entries: Entry, to: str | None = None, in_force: Plan | None = None, **partitions: int) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        targets(entries, to, [] if in_force is None else [in_force], cluster(**partitions))
    return caught.value.problems


def test_they_go_to_their_own_destination_where_others_may_write() -> None:
    found = targets([entry(), entry(partition=1)], None, [plan("continue")], cluster(dr_orders=2))
    assert found == {"orders": "dr.orders"}


def test_a_copy_that_halts_at_strangers_is_refused_even_when_it_is_named() -> None:
    for to, group in ((None, "default"), ("dr.orders", "default"), (None, "backfill")):
        in_force = plan("halt").model_copy(update={"group": group})
        (problem,) = refusal(entry(), to=to, in_force=in_force, dr_orders=2)
        assert problem.startswith("dr.orders: replayed records would halt the replication of orders")


def test_they_go_to_the_topic_that_is_named() -> None:
    found = targets([entry(), entry("clicks")], "repaired", [plan("halt")], cluster(repaired=1))
    assert found == {"orders": "repaired", "clicks": "repaired"}


def test_a_topic_that_the_link_does_not_write_into_now_has_to_be_named() -> None:
    (problem,) = refusal(entry(), in_force=None, dr_orders=2)
    assert problem == "no plan of the link writes into dr.orders now; name it with --to if it is meant"
    assert targets([entry()], "dr.orders", [], cluster(dr_orders=2)) == {"orders": "dr.orders"}


def test_every_problem_is_said_at_once() -> None:
    entries = [entry(partition=7), entry("clicks", destination="dr.clicks"), entry("x", destination="__x")]
    assert refusal(*entries, in_force=plan("continue"), dr_orders=2) == (
        "the destination has no topic dr.clicks; create it, or name another one with --to",
        "topic dr.orders has 2 partitions, and records are of partition 7",
        "__x is an internal topic",
    )


def test_the_plan_of_every_task_group_counts() -> None:
    other = plan("continue").model_copy(update={"group": "default", "topics": ()})
    assert targets([entry()], None, [other, plan("continue")], cluster(dr_orders=2)) == {"orders": "dr.orders"}
    with pytest.raises(ConfigError, match="would halt the replication"):
        targets([entry()], "dr.orders", [plan("halt"), other], cluster(dr_orders=2))


def test_the_copy_of_another_link_that_halts_at_strangers_is_spared_too() -> None:
    lenient, strict = plan("expect"), plan("halt").model_copy(update={"link": "other"})
    for plans in ([lenient, strict], [strict, lenient]):
        with pytest.raises(ConfigError, match="would halt the replication of orders"):
            targets([entry()], "dr.orders", plans, cluster(dr_orders=2))
