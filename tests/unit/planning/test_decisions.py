"""What is decided once about a deleted topic holds for that one loss, and for no other."""

import json
from dataclasses import replace
from typing import Any, Literal

import pytest

from strait.config.links import Link
from strait.errors import ConfigError
from strait.model import ClusterFacts, TopicFacts
from strait.planning.plan.draft import Draft
from strait.planning.plan.planner import Proposal, Runs, compose, survey
from strait.planning.topics import decisions
from strait.planning.topics.lost_mappings import Begun
from strait.planning.topics.start_offsets import Resume, StartOffsets
from strait.state.codec import encode
from strait.state.schema import Decision, Plan

Action = Literal["continue", "restart"]


def link(**settings: Any) -> Link:
    block = {"source": "a", "destination": "b", "topics": {"regex": [".*"]}} | settings
    return Link.model_validate(block, strict=False)


def cluster(name: str, topics: dict[str, str]) -> ClusterFacts:
    return ClusterFacts(name, name, {topic: TopicFacts(topic, known, 2) for topic, known in topics.items()})


class Cycles:
    """A link that has copied `orders` from s1 into d1, ten records of each partition, and its cycles since."""

    def __init__(self, settings: Link | None = None) -> None:
        self.settings = settings or link()
        self.source, self.destination = cluster("a", {"orders": "s1"}), cluster("b", {"orders": "d1"})
        self.runs: Runs = {}
        self.plan: Plan | None = None
        self.cycle()
        self.runs = {place: (runs[0].model_copy(update={"sequence_end": 10}),) for place, runs in self.runs.items()}

    def cycle(self) -> Proposal:
        plans = {} if self.plan is None else {"default": self.plan}
        found = survey("l", self.settings, self.source, self.destination, self.runs, None, plans.values())
        starts = {
            place: asked.fresh.begin.offset if isinstance(asked.fresh.begin, Resume) else 0
            for place, asked in found.new.items()
        }
        ends = dict.fromkeys((asked.target for asked in found.new.values()), 0)
        proposal = compose(self.settings, found, StartOffsets(starts, ends), plans, stopped=False, now_ms=5)
        for draft in proposal.drafts.values():
            self.publish(draft)
        first = {(run.topic, run.partition): (run,) for run in proposal.first_runs(1_000)}
        self.runs = {place: (*self.runs.get(place, ()), *first.get(place, ())) for place in {*self.runs, *first}}
        return proposal

    def publish(self, draft: Draft) -> None:
        version = 1 if self.plan is None else self.plan.version + 1
        self.plan = draft.as_plan(link="l", group="default", version=version, producer_id=7, now_ms=version)

    def decide(self, action: Action) -> None:
        assert self.plan is not None
        made = Decision(topic="orders", action=action, by="ann", at_ms=9)
        wanted = decisions.resolve(self.plan.waiting, Begun.of((self.plan,), self.runs), made)
        self.publish(replace(Draft.of(self.plan), decisions=wanted))

    @property
    def waits(self) -> dict[str, tuple[int, ...]]:
        assert self.plan is not None
        return {item.reason: item.partitions for item in self.plan.waiting}


@pytest.mark.parametrize(("action", "base"), [("continue", 10), ("restart", 0)])
def test_a_deleted_destination_is_created_by_a_decision_that_holds_once(action: Action, base: int) -> None:
    cycles = Cycles()
    for name in ("d2", "d3"):
        cycles.destination = cluster("b", {})
        proposal = cycles.cycle()
        assert (proposal.create, cycles.waits) == ((), {"destination_deleted": (0, 1)})
        assert not cycles.cycle().drafts
        if name == "d3":
            break
        (one, other) = proposal.losses("l", 1)
        assert (one.cause, one.action, one.from_offset, one.to_offset) == ("destination_deleted", "halted", 0, 10)
        assert other.partition == 1
        cycles.decide(action)
        assert [item.topic for item in cycles.cycle().create] == ["orders"]
        cycles.destination = cluster("b", {"orders": name})
        proposal = cycles.cycle()
        assert {new.source_base for new in proposal.new.values()} == {base}
        assert all("was decided by ann" in loss.detail for loss in proposal.losses("l", 1))
        assert cycles.waits == {}
        cycles.cycle()
        assert cycles.plan is not None
        assert (cycles.plan.decisions, cycles.cycle().drafts) == ((), {})


def test_a_source_that_was_made_anew_is_left_to_the_slot_until_it_has_begun_it() -> None:
    cycles = Cycles()
    cycles.source = cluster("a", {"orders": "s2"})
    cycles.cycle()
    assert cycles.waits == {"source_recreated": (0, 1)}
    cycles.decide("restart")
    for _ in range(2):
        cycles.cycle()
        assert cycles.plan is not None
        (topic,) = cycles.plan.topics
        assert (cycles.waits, topic.policy.on_loss, len(cycles.plan.decisions)) == ({}, "restart", 1)
    begun = {
        "source_id": "s2",
        "source_base": 0,
        "sequence_base": 10,
        "destination_base": 10,
        "checkpoint_at_ms": 2_000,
    }
    cycles.runs = {place: (*runs, runs[0].model_copy(update=begun)) for place, runs in cycles.runs.items()}
    cycles.cycle()
    (topic,) = cycles.plan.topics
    assert (cycles.waits, topic.policy.on_loss, cycles.plan.decisions) == ({}, "halt", ())
    cycles.source = cluster("a", {"orders": "s3"})
    cycles.cycle()
    assert cycles.waits == {"source_recreated": (0, 1)}


def test_what_a_rule_decides_or_was_never_copied_is_created_as_before() -> None:
    ruled = {"topics": {"regex": [".*"], "rules": [{"match": ".*", "on_loss": "restart"}]}}
    cycles = Cycles(link(**ruled))
    cycles.destination = cluster("b", {})
    assert [item.topic for item in cycles.cycle().create] == ["orders"]
    cycles = Cycles()
    cycles.source = cluster("a", {"orders": "s1", "clicks": "s1"})
    assert [item.topic for item in cycles.cycle().create] == ["clicks"]


def test_a_topic_that_was_there_is_told_from_a_name_that_never_was() -> None:
    cycles = Cycles(link(topics={"include": ["orders", "oders"]}))
    cycles.source = cluster("a", {})
    cycles.cycle()
    assert cycles.plan is not None
    details = {item.topic: item.detail for item in cycles.plan.waiting}
    assert details["oders"] == "topic oders does not exist on a, or this principal may not see it"
    assert details["orders"] == (
        "a does not have topic orders any more, or hides it from this principal; the link has copied 20 records, the "
        "last confirmed at 1970-01-01 00:00:01 UTC; they stay in orders on the destination"
    )
    with pytest.raises(ConfigError, match="the source does not have it"):
        cycles.decide("restart")


def test_a_plan_without_decisions_can_be_read_by_older_versions() -> None:
    cycles = Cycles()
    assert cycles.plan is not None
    assert "decisions" not in json.loads(encode(cycles.plan)[1])
    cycles.destination = cluster("b", {"orders": "d2"})
    cycles.cycle()
    cycles.decide("continue")
    assert len(json.loads(encode(cycles.plan)[1])["decisions"]) == 1
