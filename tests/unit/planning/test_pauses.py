"""What a pause leaves out, and how a plan in force is edited: nothing that is not meant changes or moves."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strait.errors import ConfigError
from strait.model import TopicPartition
from strait.planning.plan.draft import Draft
from strait.planning.plan.pauses import (
    Scope,
    edited,
    held,
    pause,
    pauses_of,
    resume,
)
from strait.state.schema import Budget, OffsetMapping, Pause, Plan, PlannedTopic, Waiting
from support.model.reports import plain_run


def paused(topic: str = "", partition: int | None = None, by: str = "ann", at_ms: int = 5_000) -> Pause:
    return Pause(topic=topic, partition=partition, by=by, at_ms=at_ms, reason="a test")


def run(topic: str, partition: int, source_id: str = "s") -> OffsetMapping:
    return plain_run(topic=topic, partition=partition, destination=topic, source_id=source_id, checkpoint_at_ms=1)


def draft(**topics: tuple[int | None, ...]) -> Draft:
    planned = tuple(
        PlannedTopic(source=name, destination=name, source_id="s", destination_id="d", slots=slots)
        for name, slots in topics.items()
    )
    return Draft(slots=2, stopped=False, topics=planned, waiting=(), budgets=())


def runs(of: Draft) -> dict[tuple[str, int], tuple[OffsetMapping, ...]]:
    return {
        (topic.source, number): (run(topic.source, number),)
        for topic in of.topics
        for number in range(len(topic.slots))
    }


def slots(of: Draft) -> dict[str, tuple[int | None, ...]]:
    return {topic.source: topic.slots for topic in of.topics}


@pytest.mark.parametrize(
    ("text", "scope"),
    [("", Scope()), ("orders", Scope("orders")), ("orders:7", Scope("orders", 7)), ("a.b-c_d:0", Scope("a.b-c_d", 0))],
)
def test_a_scope_is_a_link_a_topic_or_a_partition(text: str, scope: Scope) -> None:
    assert Scope.parse(text) == scope


@pytest.mark.parametrize("text", ["orders:", "orders:x", ":3", "orders:-1", "orders:1:2"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="neither TOPIC nor TOPIC-PARTITION"):
        Scope.parse(text)


@pytest.mark.parametrize(
    ("text", "topics", "scope"),
    [
        ("orders-3", {"orders"}, Scope("orders", 3)),
        ("orders:3", {"orders", "orders-3"}, Scope("orders", 3)),
        ("orders-3", {"orders", "orders-3"}, Scope("orders-3")),
        ("a-b-0", {"a-b"}, Scope("a-b", 0)),
        ("", set(), Scope()),
    ],
)
def test_a_scope_is_understood_as_it_is_printed(text: str, topics: set[str], scope: Scope) -> None:
    assert Scope.parse(text).among(topics) == scope
    assert str(scope) in (text.replace(":", "-"), "the link")


@pytest.mark.parametrize("text", ["oders", "oders-3", "oders:3"])
def test_a_scope_of_an_unknown_topic_is_refused_with_the_nearest_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"no such topic.*did you mean 'orders'"):
        Scope.parse(text).among({"orders"})


def test_pausing_again_replaces_and_resuming_ends_that_very_one() -> None:
    found = pause(pause((), paused("orders", by="ann")), paused("orders", by="bob"))
    assert [item.by for item in found] == ["bob"]
    both = pause(found, paused())
    assert [Scope.of(item) for item in both] == [Scope(), Scope("orders")]
    assert resume(both, Scope()) == found
    with pytest.raises(ConfigError, match="orders-1: is not paused by itself; paused: the link, orders"):
        resume(both, Scope("orders", 1))


def test_a_pause_says_who_when_and_why() -> None:
    (waiting,) = edited(draft(orders=(0, 1)), [paused("orders", 1)], {}).waiting
    assert (waiting.topic, waiting.partitions, waiting.reason) == ("orders", (1,), "paused")
    assert waiting.detail == "orders-1 was paused by ann at 1970-01-01 00:00:05 UTC: a test"


def test_the_widest_pause_is_told() -> None:
    where = TopicPartition("orders", 0)
    assert held(pause(pause((), paused("orders", 0)), paused()), [where])[where].topic == ""


def test_only_what_is_meant_stops_and_all_else_stays_where_it_is() -> None:
    before = draft(orders=(0, 1, 0), payments=(1, None))
    after = edited(before, [paused("orders", 1)], runs(before))
    assert slots(after) == {"orders": (0, None, 0), "payments": (1, None)}
    assert replace(after, topics=before.topics, waiting=(), pauses=()) == before


def test_what_waits_for_something_else_says_so_though_the_link_is_paused() -> None:
    missing = Waiting(topic="nothing", reason="source_missing", detail="")
    before = replace(draft(orders=(0,)), waiting=(missing,))
    after = edited(before, [paused()], runs(before))
    assert {item.topic: item.reason for item in after.waiting} == {"nothing": "source_missing", "orders": "paused"}


def test_a_resumed_partition_goes_to_the_emptiest_slot() -> None:
    before = draft(orders=(0, 1, 0, 0))
    stopped = edited(before, [paused("orders", 3)], runs(before))
    assert slots(edited(stopped, [], runs(before))) == {"orders": (0, 1, 0, 1)}


def test_what_was_never_begun_or_is_another_topic_waits_for_the_next_plan() -> None:
    before = draft(orders=(0, 1))
    stopped = edited(before, [paused()], {})
    other = {("orders", 0): (run("orders", 0, source_id="another"),)}
    after = edited(stopped, [], other)
    assert slots(after) == {"orders": (None, None)}
    assert [(item.partitions, item.detail) for item in after.waiting] == [
        ((0, 1), "resumed; starts with the next plan")
    ]


def test_a_budget_is_shared_by_those_that_still_copy() -> None:
    before = replace(draft(orders=(0, 1)), budgets=(Budget(bytes_per_second=10, slot_shares=(0.5, 0.5)),))
    after = edited(before, [paused("orders", 1)], runs(before))
    assert after.budgets[0].slot_shares == (1.0, 0.0)


def test_the_newest_plan_tells_the_link_s_pauses() -> None:
    def plan(group: str, at_ms: int, *pauses: Pause) -> Plan:
        return Plan(link="l", group=group, version=1, producer_id=1, slots=1, pauses=pauses, published_at_ms=at_ms)

    assert pauses_of([]) == ()
    assert pauses_of([plan("bulk", 1, paused("old")), plan("gold", 2, paused("new"))]) == (paused("new"),)


PARTITIONS = st.integers(1, 6)


@given(st.dictionaries(st.sampled_from("abc"), PARTITIONS, min_size=1), st.data())
def test_whatever_is_paused_and_resumed_every_partition_is_copied_again(
    counts: dict[str, int], data: st.DataObject
) -> None:
    before = draft(**{name: tuple(number % 2 for number in range(count)) for name, count in counts.items()})
    known = runs(before)
    scopes = st.one_of(
        st.just(Scope()),
        st.sampled_from(sorted(counts)).map(Scope),
        st.tuples(st.sampled_from(sorted(counts)), st.integers(0, 6)).map(lambda pair: Scope(*pair)),
    )
    pauses: tuple[Pause, ...] = ()
    now = before
    for scope in data.draw(st.lists(scopes, max_size=6)):
        is_paused = any(Scope.of(item) == scope for item in pauses)
        pauses = resume(pauses, scope) if is_paused else pause(pauses, paused(scope.topic, scope.partition))
        now = edited(now, pauses, known)
        for topic in now.topics:
            for number, slot in enumerate(topic.slots):
                stopped = any(Scope.of(item).covers(TopicPartition(topic.source, number)) for item in pauses)
                assert (slot is None) == stopped
        assert edited(now, pauses, known) == now
    again = edited(now, (), known)
    assert again.waiting == ()
    assert all(slot is not None for topic in again.topics for slot in topic.slots)
