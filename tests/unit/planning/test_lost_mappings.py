"""A map that has lost what it said: nothing that was copied is taken for new, whatever the plans went through since."""

from dataclasses import replace
from typing import Any

import pytest

from strait.config.links import Link
from strait.model import ClusterFacts, TopicFacts
from strait.planning.plan.pauses import edited
from strait.planning.plan.planner import Draft, Proposal, Runs, Survey, compose, survey
from strait.planning.topics.start_offsets import StartOffsets
from strait.reasons import Reason
from strait.state.schema import OffsetMapping, Pause, Plan

NO_RUNS: Runs = {}
PAUSED = Pause(by="ann", at_ms=1)


def link(**rule: str) -> Link:
    rules = [{"match": ".*", **rule}] if rule else []
    block = {"source": "a", "destination": "b", "topics": {"regex": [".*"], "rules": rules}}
    return Link.model_validate(block | {"groups": {"default": {"slots": 2}}}, strict=False)


def cluster(name: str, topics: dict[str, int], generation: str = "1") -> ClusterFacts:
    facts = {topic: TopicFacts(topic, f"{name}-{topic}-{generation}", count) for topic, count in topics.items()}
    return ClusterFacts(name, f"cluster-{name}", facts)


class World:
    """A link through its cycles: each is planned with the plan of the one before."""

    def __init__(self, topics: dict[str, int]) -> None:
        self.source, self.destination = cluster("a", topics), cluster("b", topics)
        self.runs: Runs = {}
        self.plan: Plan | None = None

    def look(self, settings: Link) -> Survey:
        plans = [] if self.plan is None else [self.plan]
        return survey("l", settings, self.source, self.destination, self.runs, None, plans)

    def cycle(self, settings: Link, *, leaderless: bool = False, pauses: tuple[Pause, ...] = ()) -> Proposal:
        """One cycle; with ``leaderless`` no partition that needs a start can be asked for it."""
        found = self.look(settings)
        targets = [new.target for new in found.new.values()]
        starts = StartOffsets(dict.fromkeys(found.new, 0), dict.fromkeys(targets, 1_000))
        if leaderless:
            starts = StartOffsets(dict.fromkeys(found.new, 0), destination_failures=dict.fromkeys(targets, "no leader"))
        before = {} if self.plan is None else {"default": self.plan}
        proposal = compose(settings, found, starts, before, stopped=False, pauses=pauses, now_ms=1)
        if proposal.draft is not None:
            self.publish(proposal.draft)
        first: dict[tuple[str, int], tuple[OffsetMapping, ...]] = {
            (run.topic, run.partition): (run,) for run in proposal.first_runs(1)
        }
        self.runs = {**self.runs, **first}
        return proposal

    def publish(self, draft: Draft) -> None:
        version = 1 if self.plan is None else self.plan.version + 1
        self.plan = draft.as_plan(link="l", group="default", version=version, producer_id=7, now_ms=version)

    def pause(self, pauses: tuple[Pause, ...]) -> None:
        """As `strait pause` and `strait resume` edit the plan in force."""
        assert self.plan is not None
        self.publish(edited(Draft.of(self.plan), pauses, self.runs))

    def lose_the_map(self) -> None:
        self.runs = NO_RUNS

    def recreate(self, *topics: str) -> None:
        new = {topic: replace(self.destination.topics[topic], topic_id=f"{topic}-recreated") for topic in topics}
        self.destination = replace(self.destination, topics={**self.destination.topics, **new})

    def hide(self, topic: str) -> TopicFacts:
        facts = self.source.topics[topic]
        self.source = replace(self.source, topics={k: v for k, v in self.source.topics.items() if k != topic})
        return facts

    def show(self, facts: TopicFacts) -> None:
        self.source = replace(self.source, topics={**self.source.topics, facts.topic: facts})


def begun(topics: dict[str, int], **rule: str) -> World:
    world = World(topics)
    assert len(world.cycle(link(**rule)).new) == sum(topics.values())
    return world


@pytest.mark.parametrize("lost_while_paused", [False, True])
def test_a_pause_does_not_make_new_what_the_map_has_lost(lost_while_paused: bool) -> None:
    world = begun({"orders": 2})
    if not lost_while_paused:
        world.lose_the_map()
    world.pause((PAUSED,))
    world.lose_the_map()
    world.cycle(link(), pauses=(PAUSED,))
    world.pause(())
    assert world.cycle(link()).new == {}
    assert len(world.look(link()).copyable) == 2, "its slots wait with map_run_missing"


@pytest.mark.parametrize("others", [{}, {"clicks": 1}])
def test_a_topic_that_was_not_seen_when_the_map_was_lost_is_not_new_when_it_is_back(others: dict[str, int]) -> None:
    world = begun({"orders": 2} | others)
    facts = world.hide("orders")
    world.cycle(link())
    world.lose_the_map()
    world.cycle(link())
    world.show(facts)
    assert world.cycle(link()).new == {}
    world.hide("orders")
    world.cycle(link())
    world.show(facts)
    world.recreate("orders")
    assert {change.reason for change in world.look(link()).halted.values()} == {Reason.DESTINATION_RECREATED}


def test_an_excluded_topic_is_not_new_either() -> None:
    world = begun({"orders": 2, "clicks": 1})
    narrower = link().model_copy(update={"topics": link().topics.model_copy(update={"exclude": ("orders",)})})
    world.cycle(narrower)
    world.lose_the_map()
    world.cycle(narrower)
    assert world.cycle(link()).new == {}


@pytest.mark.parametrize("rule", [{}, {"start": "latest"}])
@pytest.mark.parametrize("others", [{}, {"clicks": 1}])
def test_a_restart_that_cannot_begin_at_once_begins_later_from_the_earliest(
    rule: dict[str, str], others: dict[str, int]
) -> None:
    world = begun({"orders": 2} | others, **rule)
    world.lose_the_map()
    world.recreate("orders")
    allowed = link(on_loss="restart", **rule)
    assert world.cycle(allowed, leaderless=True).new == {}
    found = world.look(allowed)
    assert {new.fresh.begin for new in found.new.values()} == {"earliest"}
    proposal = world.cycle(allowed)
    assert {place.topic for place in proposal.new} == {"orders"}
    assert [loss.action for loss in proposal.losses("l", 1)] == ["restarted"] * 2
    assert all("orders-recreated" in loss.detail for loss in proposal.losses("l", 1))
    assert world.cycle(allowed).new == {}


def test_a_rule_that_is_taken_back_before_it_was_followed_halts_again() -> None:
    world = begun({"orders": 2})
    world.lose_the_map()
    world.recreate("orders")
    assert world.cycle(link(on_loss="restart"), pauses=(PAUSED,)).new == {}
    proposal = world.cycle(link())
    assert proposal.new == {}
    assert {change.reason for change in world.look(link()).halted.values()} == {Reason.DESTINATION_RECREATED}


def test_one_topics_loss_does_not_hold_a_new_one_back() -> None:
    world = begun({"orders": 2})
    world.lose_the_map()
    for name, side in (("source", "a"), ("destination", "b")):
        facts = getattr(world, name)
        setattr(world, name, replace(facts, topics={**facts.topics, **cluster(side, {"fresh": 1}).topics}))
    assert world.cycle(link(), leaderless=True).new == {}
    assert [place.topic for place in world.cycle(link()).new] == ["fresh"]


def test_partitions_that_come_to_a_topic_are_new() -> None:
    world = begun({"orders": 2, "clicks": 1})
    world.source, world.destination = (cluster(name, {"orders": 3, "clicks": 1}) for name in "ab")
    world.runs = {place: runs for place, runs in world.runs.items() if place[0] == "orders"}
    assert [place.partition for place in world.cycle(link()).new] == [2]


def test_a_plan_of_an_older_version_knows_what_it_gave_to_a_slot() -> None:
    world = begun({"orders": 3})
    assert world.plan is not None
    (topic,) = world.plan.topics
    older: Any = {"slots": (0, 1, None), "unbegun": None}
    world.plan = world.plan.model_copy(update={"topics": (topic.model_copy(update=older),)})
    kept = {place: runs for place, runs in world.runs.items() if place[1] < 2}
    world.runs = kept
    assert [place.partition for place in world.look(link()).new] == [2]
    world.runs = {place: runs for place, runs in kept.items() if place[1] < 1}
    assert world.look(link()).new == {}
