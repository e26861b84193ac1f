"""Copies that end: where they do is determined once, and stays."""

from typing import Any

import pytest
from pydantic import ValidationError

from strait.config.links import Link
from strait.config.start_offset import until_text
from strait.model import ClusterFacts, TopicPartition
from strait.planning.plan.bounds import Ends, bounded, bounds_of, reached_ends
from strait.planning.plan.planner import Proposal, Runs, compose, survey
from strait.planning.review.effects import effects
from strait.planning.topics.start_offsets import StartOffsets
from strait.planning.topics.unapproved import NOTHING, Unapproved
from strait.reasons import Reason
from strait.state.codec import decode, encode
from strait.state.report_records import PartitionReport, Report
from strait.state.schema import Plan
from support.model.reports import plain_report
from unit.planning.test_plan import cluster, link, publish, reasons

T, NOW = 1_764_201_600_000, 1_764_300_000_000
SOURCE, COPY = cluster("a", {"people": 3, "orders": 1}), cluster("b", {"people": 3, "orders": 1})
P0, P1, P2 = (TopicPartition("people", number) for number in range(3))


def until(value: Any, **rule: Any) -> Link:
    return link(topics={"regex": [".*"], "rules": [{"match": "people", "until": value} | rule]})


class Source:
    """What the source answers, and how often it was asked."""

    def __init__(self, *ends: int) -> None:
        self.ends = ends
        self.asked: list[TopicPartition] = []

    def propose(
        self,
        settings: Link,
        previous: Plan | None = None,
        runs: Runs | None = None,
        *,
        facts: tuple[ClusterFacts, ClusterFacts] = (SOURCE, COPY),
        reached: tuple[TopicPartition, ...] = (),
        now_ms: int = NOW,
        unapproved: Unapproved = NOTHING,
    ) -> Proposal:
        plans = [] if previous is None else [previous]
        found = survey("a-to-b", settings, *facts, runs or {}, None, plans, unapproved=unapproved)
        bounds = bounds_of(settings, found, plans, reached, now_ms)
        if bounds is not None:
            self.asked += bounds.wanted
            known = {place: self.ends[place.partition] for place in bounds.wanted if self.ends[place.partition] >= 0}
            found = bounded(found, bounds, Ends(known, dict.fromkeys(bounds.wanted.keys() - known, "no leader")))
        starts = StartOffsets(dict.fromkeys(found.new, 100), {new.target: 7 for new in found.new.values()})
        return compose(settings, found, starts, {"default": previous} if previous else {}, stopped=False)


def ends_of(plan: Plan) -> tuple[int, ...]:
    return next(topic.policy.ends for topic in plan.topics if topic.source == "people")


def slots_of(proposal: Proposal) -> tuple[int | None, ...]:
    assert proposal.draft is not None
    return next(topic.slots for topic in proposal.draft.topics if topic.source == "people")


@pytest.mark.parametrize("end", ["latest", T])
def test_an_end_is_determined_once_whatever_is_written_afterwards(end: Any) -> None:
    source = Source(10, 20, 0)
    plan, runs = publish(source.propose(until(end)))
    assert ends_of(plan) == (10, 20, 0) and sorted(source.asked) == [P0, P1, P2]
    later = Source(99, 99, 99)
    assert later.propose(until(end), plan, runs).empty and later.asked == []
    assert decode(Plan, *encode(plan)) == plan


def test_offsets_are_ends_as_they_are_and_other_partitions_have_none() -> None:
    source = Source()
    plan, runs = publish(source.propose(until({0: 5, 2: 0})))
    assert ends_of(plan) == (5, -1, 0) and source.asked == []
    assert source.propose(until({0: 5, 2: 0}), plan, runs).empty


def test_nothing_starts_before_its_end_is_known() -> None:
    ahead = Source(1, 1, 1).propose(until(NOW + 1))
    assert reasons(ahead)["people"] == (Reason.UNTIL_AHEAD, (0, 1, 2)) and not {
        place for place in ahead.new if place.topic == "people"
    }
    plan, runs = publish(ahead)
    then = Source(1, 2, 3).propose(until(NOW + 1), plan, runs, now_ms=NOW + 1)
    assert ends_of(publish(then, runs)[0]) == (1, 2, 3)
    unknown = Source(1, -1, 3).propose(until("latest"))
    assert reasons(unknown)["people"] == (Reason.SOURCE_LEADERLESS, (1,))
    assert ends_of(publish(unknown)[0]) == (1, -1, 3) and slots_of(unknown)[1] is None


def test_a_partition_that_has_reached_its_end_is_finished_for_good() -> None:
    plan, runs = publish(Source(10, 20, 0).propose(until("latest")))
    first = Source().propose(until("latest"), plan, runs, reached=(P0, P2))
    assert reasons(first)["people"] == (Reason.FINISHED, (0, 2)) and slots_of(first)[1] is not None
    plan, runs = publish(first, runs)
    assert Source().propose(until("latest"), plan, runs).empty, "also once no report of it is left"
    assert ends_of(plan) == (10, 20, 0)


def test_a_later_end_continues_and_an_earlier_one_ends_at_once() -> None:
    plan, runs = publish(Source(10, 20, 30).propose(until(T)))
    plan, runs = publish(Source().propose(until(T), plan, runs, reached=(P0, P1, P2)), runs)
    settings = until(T + 1)
    more = Source(15, 25, 35).propose(settings, plan, runs)
    assert "people" not in reasons(more) and None not in slots_of(more)
    (effect,) = effects(settings, more)
    assert (effect.verb, effect.subject) == ("changes", "people") and "until" in effect.detail
    assert ends_of(publish(more, runs)[0]) == (15, 25, 35)
    none = Source().propose(link(), plan, runs)
    assert (
        "people" not in reasons(none) and ends_of(publish(none, runs)[0]) == () and publish(none, runs)[0].bounds == ()
    )


def test_an_end_is_shown_before_the_destination_topic_is_there() -> None:
    settings = until("latest")
    first = Source(1, 2, 3).propose(settings, facts=(SOURCE, cluster("b", {})))
    details = {effect.subject: effect.detail for effect in effects(settings, first) if effect.verb == "copies"}
    assert details == {"people": "from earliest until latest", "orders": "from earliest"}


def test_an_unapproved_end_leaves_the_former_one() -> None:
    plan, runs = publish(Source(10, 20, 30).propose(until(T)))
    policies = {topic.source: topic.policy for topic in plan.topics if topic.source == "people"}
    left_out = Unapproved(policies=policies, names={"people": "people"})
    kept = Source().propose(until(T + 1), plan, runs, unapproved=left_out)
    assert ends_of(publish(kept, runs)[0] if kept.draft else plan) == (10, 20, 30)


def test_a_topic_that_is_hidden_for_a_while_keeps_its_end() -> None:
    plan, runs = publish(Source(10, 20, 30).propose(until("latest")))
    plan, runs = publish(Source().propose(until("latest"), plan, runs, reached=(P1,)), runs)
    hidden = cluster("a", {"orders": 1}), COPY
    plan, _ = publish(Source().propose(until("latest"), plan, runs, facts=hidden), runs)
    back = Source().propose(until("latest"), plan, runs)
    assert ends_of(publish(back, runs)[0]) == (10, 20, 30) and reasons(back)["people"] == (Reason.FINISHED, (1,))


def test_another_topic_of_the_same_name_has_another_end() -> None:
    rule = {"on_loss": "restart"}
    plan, runs = publish(Source(10, 20, 30).propose(until("latest", **rule)))
    again = cluster("a", {"people": 3, "orders": 1}, generation="2"), COPY
    changed = Source(1, 2, 3).propose(until("latest", **rule), plan, runs, facts=again)
    assert ends_of(publish(changed, runs)[0]) == (1, 2, 3)


def test_what_is_copied_again_is_not_finished() -> None:
    rule = {"on_loss": "restart"}
    plan, runs = publish(Source(10, 20, 30).propose(until("latest", **rule)))
    plan, runs = publish(Source().propose(until("latest", **rule), plan, runs, reached=(P0, P1, P2)), runs)
    gone = SOURCE, cluster("b", {"people": 3, "orders": 1}, generation="2")
    settings = until("latest", **rule)
    changed = Source().propose(settings, plan, runs, facts=gone)
    assert reasons(changed).get("people", ("",))[0] != Reason.FINISHED and ends_of(changed.draft) == (10, 20, 30)  # type: ignore[arg-type]


def report(plan: Plan, slot: int, version: int, *partitions: int) -> Report:
    rows = tuple(
        PartitionReport(
            topic="people", partition=number, state="waiting", reason="finished", position=1, end=1, lag_records=0,
            lag_seconds=0.0, records=1, bytes=1,
        )
        for number in partitions
    )  # fmt: skip
    return plain_report(slot=slot, plan_version=version, partitions=rows)


def test_only_slots_that_follow_the_plan_say_what_is_finished() -> None:
    plan, _ = publish(Source(10, 20, 30).propose(until("latest")))
    slots = next(topic.slots for topic in plan.topics if topic.source == "people")
    assert slots[0] is not None
    told = {("default", slots[0]): [report(plan, slots[0], plan.version, 0)]}
    assert reached_ends([plan], told) == {P0}
    assert reached_ends([plan], {("default", slots[0]): [report(plan, slots[0], plan.version - 1, 0)]}) == set()
    other = next(slot for slot in slots if slot != slots[0])
    assert other is not None
    assert reached_ends([plan], {("default", other): [report(plan, other, plan.version, 0)]}) == set()
    without, _ = publish(Source().propose(link()))
    assert reached_ends([without], told) == set()


def test_equal_ends_are_written_in_one_way() -> None:
    assert until_text(None) == "" and until_text("latest") == "latest"
    assert (
        until_text(T) == until_text(until("2025-11-27T00:00:00Z").topics.rules[0].until) == "2025-11-27T00:00:00+00:00"
    )
    assert until_text({2: 1, 10: 5}) == until_text({10: 5, 2: 1}) == '{"2": 1, "10": 5}'
    with pytest.raises(ValidationError, match="no end"):
        until("earliest")
