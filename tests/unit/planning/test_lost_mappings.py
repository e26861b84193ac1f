"""A map that has lost what it said: nothing that was copied is taken for new, whatever the plans went through since."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from strait.config.links import Link
from strait.config.topics import Naming
from strait.model import ClusterFacts, TopicFacts, TopicPartition
from strait.planning.plan.draft import Draft
from strait.planning.plan.pauses import edited
from strait.planning.plan.planner import Proposal, Runs, Survey, compose, survey
from strait.planning.topics.start_offsets import StartOffsets
from strait.reasons import Reason
from strait.state.codec import decode, encode
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

    def lose(self, topic: str, number: int) -> None:
        self.runs = {place: runs for place, runs in self.runs.items() if place != (topic, number)}

    def grow(self, topic: str, partitions: int) -> None:
        for name in ("source", "destination"):
            facts: ClusterFacts = getattr(self, name)
            if topic in facts.topics:
                grown = replace(facts.topics[topic], partitions=partitions)
                setattr(self, name, replace(facts, topics={**facts.topics, topic: grown}))


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


def test_a_topic_that_could_not_begin_at_once_still_begins_where_its_rule_says() -> None:
    world = World({"orders": 2})
    assert world.cycle(link(start="latest"), leaderless=True).new == {}
    assert {new.fresh.begin for new in world.look(link(start="latest")).new.values()} == {"latest"}


def begins(world: World, settings: Link) -> dict[int, Any]:
    """Partition of `orders` that is new -> its start."""
    return {place.partition: new.fresh.begin for place, new in world.look(settings).new.items()}


def test_a_partition_that_could_not_begin_with_its_topic_begins_where_its_rule_says() -> None:
    """It had no leader, or was paused; the others have begun meanwhile."""
    settings, paused = link(start="latest"), Pause(topic="orders", partition=2, by="ann", at_ms=1)
    world = World({"orders": 3})
    assert [place.partition for place in world.cycle(settings, pauses=(paused,)).new] == [0, 1]
    assert begins(world, settings) == {2: "latest"}
    world.cycle(settings, leaderless=True)
    assert begins(world, settings) == {2: "latest"}


@pytest.mark.parametrize("gone", [False, True])
def test_a_partition_that_was_added_begins_at_its_first_record_however_long_it_waits(gone: bool) -> None:
    settings = link(start="latest")
    world = World({"orders": 3, "clicks": 1})
    paused = Pause(topic="orders", partition=2, by="ann", at_ms=1)
    world.cycle(settings, pauses=(paused,))
    world.source, world.destination = (cluster(name, {"orders": 4, "clicks": 1}) for name in "ab")
    assert begins(world, settings) == {2: "latest", 3: "earliest"}
    for _ in range(2):
        world.cycle(settings, leaderless=True)
        assert begins(world, settings) == {2: "latest", 3: "earliest"}
    if gone:
        facts = world.hide("orders")
        for _ in range(2):
            world.cycle(settings)
        world.show(facts)
        assert begins(world, settings) == {2: "latest", 3: "earliest"}
    world.cycle(settings)
    assert world.plan is not None
    assert {topic.added for topic in world.plan.topics} == {()}


def test_only_a_plan_with_an_added_partition_that_waits_needs_this_version() -> None:
    world = begun({"orders": 2})
    assert world.plan is not None
    assert b"added" not in encode(world.plan)[1]
    world.source, world.destination = (cluster(name, {"orders": 3}) for name in "ab")
    world.cycle(link(), leaderless=True)
    assert [topic.added for topic in world.plan.topics] == [(2,)]
    assert decode(Plan, *encode(world.plan)) == world.plan
    world.cycle(link())
    assert b"added" not in encode(world.plan)[1]


def test_a_topic_that_never_began_and_is_gone_is_forgotten_at_once() -> None:
    world = World({"orders": 2, "clicks": 1})
    world.cycle(link(), leaderless=True)
    world.hide("orders")
    world.cycle(link())
    assert world.plan is not None
    assert world.plan.left == ()
    assert world.cycle(link()).drafts == {}


def test_one_lost_partition_of_an_absent_topic_is_not_new_and_one_that_came_is() -> None:
    world = begun({"orders": 2})
    facts = world.hide("orders")
    world.cycle(link())
    world.lose("orders", 1)
    world.show(facts)
    world.grow("orders", 3)
    assert [place.partition for place in world.cycle(link()).new] == [2]
    assert world.cycle(link()).drafts == {}


def test_another_partition_of_a_topic_that_is_in_the_map_again_makes_nothing_new() -> None:
    world = begun({"orders": 2})
    world.lose_the_map()
    world.grow("orders", 3)
    assert [place.partition for place in world.cycle(link()).new] == [2]
    facts = world.hide("orders")
    world.cycle(link())
    world.show(facts)
    assert world.cycle(link()).new == {}


@pytest.mark.parametrize("on_loss", ["halt", "restart"])
def test_after_another_naming_a_lost_partition_is_halted_as_one_with_its_map(on_loss: str) -> None:
    world = begun({"orders": 2})
    world.lose_the_map()
    topic = TopicFacts("p.orders", "b-p.orders-1", 2)
    world.destination = replace(world.destination, topics={**world.destination.topics, "p.orders": topic})
    renamed = link(on_loss=on_loss).model_copy(update={"naming": Naming(policy="prefix", prefix="p.")})
    for _ in range(2):
        proposal = world.cycle(renamed)
        assert proposal.new == {}
        assert {change.reason for change in world.look(renamed).halted.values()} == {Reason.NAMING_CHANGED}
    assert proposal.drafts == {}


def test_what_restarted_and_was_lost_again_is_not_restarted_again() -> None:
    world = begun({"orders": 2})
    world.lose("orders", 0)
    world.lose("orders", 1)
    world.recreate("orders")
    one_paused = (Pause(topic="orders", partition=1, by="ann", at_ms=1),)
    restart = link(on_loss="restart")
    assert [place.partition for place in world.cycle(restart, pauses=one_paused).new] == [0]
    world.lose_the_map()
    assert world.cycle(restart, pauses=one_paused).new == {}
    assert [place.partition for place in world.cycle(restart).new] == [1]


def older(world: World) -> None:
    """The plan in force as versions before this memory published it."""
    assert world.plan is not None
    topics = tuple(topic.model_copy(update={"unbegun": None}) for topic in world.plan.topics)
    world.plan = world.plan.model_copy(update={"topics": topics, "left": ()})


def test_an_older_plan_is_enough_to_know_a_topic_that_is_away_or_recreated() -> None:
    world = begun({"orders": 2, "clicks": 1})
    older(world)
    world.lose_the_map()
    facts = world.hide("orders")
    world.cycle(link())
    world.show(facts)
    assert world.cycle(link()).new == {}
    world = begun({"orders": 2})
    older(world)
    world.lose_the_map()
    world.recreate("orders")
    assert len(world.cycle(link(on_loss="restart")).new) == 2
    world = begun({"orders": 2})
    older(world)
    world.lose_the_map()
    world.cycle(link())
    assert world.cycle(link()).drafts == {}, "once is enough"


class Lives(RuleBasedStateMachine):
    """Whatever happens to a link, nothing that was begun is ever begun again into the same topic; and what was never
    begun begins once nothing is in its way."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World({"t0": 2, "t1": 1})
        self.hidden: dict[str, TopicFacts] = {}
        self.pauses: tuple[Pause, ...] = ()
        self.into: dict[TopicPartition, str] = {}
        self.rule = link()
        self.names = 2

    @rule(on_loss=st.sampled_from(["halt", "continue", "restart"]))
    def another_rule(self, on_loss: str) -> None:
        self.rule = link(on_loss=on_loss)

    @rule(leaderless=st.booleans())
    def cycle(self, leaderless: bool) -> None:
        self.plan(leaderless=leaderless)

    def plan(self, *, leaderless: bool = False) -> Proposal:
        proposal = self.world.cycle(self.rule, leaderless=leaderless, pauses=self.pauses)
        for place in proposal.new:
            topic_id = self.world.destination.topics[place.topic].topic_id
            assert self.into.get(place) != topic_id, f"{place} begins again"
            self.into[place] = topic_id
        return proposal

    @precondition(lambda self: self.world.plan is not None)
    @rule(pause=st.sampled_from([None, PAUSED, Pause(topic="t0", by="ann", at_ms=1)]))
    def pause(self, pause: Pause | None) -> None:
        self.pauses = () if pause is None else (pause,)
        self.world.pause(self.pauses)

    @precondition(lambda self: self.world.source.topics)
    @rule(data=st.data())
    def hide(self, data: st.DataObject) -> None:
        topic = data.draw(st.sampled_from(sorted(self.world.source.topics)))
        self.hidden[topic] = self.world.hide(topic)

    @rule()
    def show_all(self) -> None:
        self.show()

    def show(self) -> None:
        for topic, facts in self.hidden.items():
            self.world.show(replace(facts, partitions=self.world.destination.topics[topic].partitions))
        self.hidden.clear()

    @rule()
    def lose_all(self) -> None:
        self.world.lose_the_map()

    @precondition(lambda self: self.world.runs)
    @rule(data=st.data())
    def lose_one(self, data: st.DataObject) -> None:
        self.world.lose(*data.draw(st.sampled_from(sorted(self.world.runs))))

    @rule(data=st.data())
    def recreate(self, data: st.DataObject) -> None:
        topics = self.world.destination.topics
        facts = topics[data.draw(st.sampled_from(sorted(topics)))]
        new = replace(facts, topic_id=f"{facts.topic_id}+")
        self.world.destination = replace(self.world.destination, topics={**topics, facts.topic: new})

    @rule(data=st.data())
    def grow(self, data: st.DataObject) -> None:
        facts = data.draw(st.sampled_from([*self.world.destination.topics.values()]))
        self.world.grow(facts.topic, facts.partitions + 1)

    @rule()
    def another_topic(self) -> None:
        for name, side in (("source", "a"), ("destination", "b")):
            there: ClusterFacts = getattr(self.world, name)
            added = cluster(side, {f"t{self.names}": 1}).topics
            setattr(self.world, name, replace(there, topics={**there.topics, **added}))
        self.names += 1

    def teardown(self) -> None:
        self.show()
        self.pauses = ()
        self.plan()
        topics = self.world.source.topics.values()
        assert self.into.keys() == {(facts.topic, n) for facts in topics for n in range(facts.partitions)}
        assert self.plan().drafts == {}, "nothing is left to publish"


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=150, stateful_step_count=25)
