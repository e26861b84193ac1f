"""Each task group has its own plan; together they copy every partition once, whatever moves between them."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from strait.config.links import Link
from strait.control.proposing import collector_paused
from strait.model import ClusterFacts, TopicFacts, TopicPartition
from strait.planning.history.load import Load
from strait.planning.plan.draft import Draft
from strait.planning.plan.planner import Proposal, compose, survey
from strait.planning.review.text import proposal_text
from strait.planning.topics.start_offsets import StartOffsets
from strait.state.schema import OffsetMapping, Plan

Runs = dict[tuple[str, int], tuple[OffsetMapping, ...]]
GROUPS = {"default": {"slots": 2}, "gold": {"slots": 1}, "backfill": {"slots": 1}}
RULES = [{"match": "gold.*", "group": "gold"}]


def link(rules: Any = RULES, groups: Any = GROUPS, budget: Any = None, **settings: Any) -> Link:
    topics = {"regex": [".*"], "rules": rules, "budget": budget or {}}
    base = {"source": "a", "destination": "b", "topics": topics, "groups": groups, "create_topics": False}
    return Link.model_validate(base | settings, strict=False)


class World:
    """A link over several cycles; what is proposed is published."""

    def __init__(self, **topics: int) -> None:
        self.topics = topics
        self.runs: Runs = {}
        self.plans: dict[str, Plan] = {}

    def propose(
        self, settings: Link, loads: dict[TopicPartition, Load] | None = None, history: int = 0, stopped: bool = False
    ) -> Proposal:
        source, destination = (
            ClusterFacts(
                side, side, {name: TopicFacts(name, f"{side}-{name}", count) for name, count in self.topics.items()}
            )
            for side in ("a", "b")
        )
        found = survey("l", settings, source, destination, self.runs)
        targets = {new.target: 0 for new in found.new.values()}
        starts = StartOffsets(dict.fromkeys(found.new, 0), targets, histories=dict.fromkeys(found.new, history))
        return compose(settings, found, starts, dict(self.plans), stopped=stopped, loads=loads or {})

    def cycle(self, settings: Link, **given: Any) -> Proposal:
        proposal = self.propose(settings, **given)
        for group, draft in proposal.drafts.items():
            version = self.plans[group].version + 1 if group in self.plans else 1
            self.plans[group] = draft.as_plan(link="l", group=group, version=version, producer_id=7, now_ms=1)
        self.runs |= {(run.topic, run.partition): (run,) for run in proposal.first_runs(1)}
        return proposal

    def places(self) -> dict[TopicPartition, list[str]]:
        """Partition -> the groups whose plans copy it."""
        found: dict[TopicPartition, list[str]] = {}
        for group, plan in self.plans.items():
            for topic in plan.topics:
                for number, slot in enumerate(topic.slots):
                    if slot is not None:
                        assert 0 <= slot < plan.slots
                        found.setdefault(TopicPartition(topic.source, number), []).append(group)
        return found


def in_groups(world: World) -> dict[str, str]:
    """Topic -> the one group that copies all of it."""
    found: dict[str, set[str]] = {}
    for partition, groups in world.places().items():
        found.setdefault(partition.topic, set()).update(groups)
    return {topic: ",".join(sorted(groups)) for topic, groups in found.items()}


def test_topics_go_to_the_group_of_their_rule_and_else_to_the_default_one() -> None:
    world = World(orders=3, gold1=2)
    world.cycle(link())
    assert in_groups(world) == {"orders": "default", "gold1": "gold"}
    assert [topic.source for topic in world.plans["gold"].topics] == ["gold1"]
    assert world.propose(link()).empty


def test_a_group_with_nothing_to_copy_rests_and_the_default_one_never_does() -> None:
    world = World(gold1=1)
    world.cycle(link())
    assert {group: plan.stopped for group, plan in world.plans.items()} == {
        "default": False,
        "gold": False,
        "backfill": True,
    }
    world.cycle(link(), stopped=True)
    assert all(plan.stopped for plan in world.plans.values())


def test_another_rule_moves_a_topic_from_plan_to_plan_in_one_publication() -> None:
    world = World(orders=3, gold1=2)
    world.cycle(link())
    moved = world.cycle(link(rules=[{"match": "orders", "group": "gold"}]))
    assert set(moved.drafts) == {"default", "gold"}
    assert not moved.new, "it goes on where it is"
    assert in_groups(world) == {"orders": "gold", "gold1": "default"}
    assert "~ moves     gold1 0-1\n~ moves     orders 0-2" in proposal_text(moved)


def test_a_group_that_is_configured_no_longer_ends_empty() -> None:
    world = World(gold1=2)
    world.cycle(link())
    world.cycle(link(rules=[], groups={"default": {"slots": 2}}))
    assert in_groups(world) == {"gold1": "default"}
    assert world.plans["gold"].stopped and not world.plans["gold"].topics
    assert world.propose(link(rules=[], groups={"default": {"slots": 2}})).empty


def test_history_is_copied_in_its_lane_and_each_partition_handed_over_when_it_has_caught_up() -> None:
    settings, world = link(backfill={"behind_records": 1000}), World(orders=3, gold1=2)
    world.cycle(settings, history=5000)
    assert in_groups(world) == {"orders": "backfill", "gold1": "backfill"}
    done = {TopicPartition("orders", 1): Load(None, 0, 0.0, True), TopicPartition("gold1", 0): Load(None, 0, 0.0, True)}
    world.cycle(settings, loads=done)
    assert world.places() == {
        TopicPartition("orders", 0): ["backfill"],
        TopicPartition("orders", 1): ["default"],
        TopicPartition("orders", 2): ["backfill"],
        TopicPartition("gold1", 0): ["gold"],
        TopicPartition("gold1", 1): ["backfill"],
    }
    assert world.propose(settings, loads=done).empty
    assert world.propose(settings).empty, "reports that are missing for a while change nothing"


def test_partitions_that_wait_are_told_by_the_group_that_their_topic_belongs_to() -> None:
    world = World(gold1=2)
    settings = link(topics={"include": ["gold1", "gold2", "missing"], "rules": RULES})
    world.cycle(settings)
    waits = {group: [item.topic for item in plan.waiting] for group, plan in world.plans.items()}
    assert waits == {"default": ["missing"], "gold": ["gold2"], "backfill": []}


def test_slots_are_added_under_load_and_only_what_they_take_over_moves() -> None:
    groups = {"default": {"slots": 1, "max_slots": 4, "slot_bytes_per_second": 10_000_000}}
    settings, world = link(rules=[], groups=groups), World(orders=8)
    world.cycle(settings)
    assert world.plans["default"].slots == 1
    loads = {TopicPartition("orders", number): Load(3e6, 0, 0.0, True) for number in range(8)}
    world.cycle(settings, loads=loads)
    assert world.plans["default"].slots == 3
    assert sorted(Counter(world.plans["default"].topics[0].slots).values()) == [2, 3, 3]
    assert world.propose(settings, loads=loads).empty
    assert world.propose(settings).empty


def test_the_whole_link_is_shown_as_one_plan_whatever_its_groups() -> None:
    world = World(orders=3, gold1=2)
    proposal = world.propose(link(budget={"bytes_per_second": 9}))
    whole = proposal.draft
    assert whole is not None and proposal.before is None
    assert [topic.source for topic in whole.topics] == ["gold1", "orders"]
    assert all(slot is not None for topic in whole.topics for slot in topic.slots)
    assert {group: isinstance(draft, Draft) for group, draft in proposal.drafts.items()} == dict.fromkeys(GROUPS, True)
    every = [share for draft in proposal.drafts.values() for budget in draft.budgets for share in budget.slot_shares]
    assert sum(every) == 1


names = st.sampled_from(["orders", "clicks", "gold1", "gold2", "x"])
reports = st.dictionaries(
    st.builds(TopicPartition, names, st.integers(0, 5)),
    st.builds(Load, st.none() | st.floats(0, 1e9), st.integers(0, 5000), st.floats(0, 1000), st.booleans()),
)
settings_of = st.builds(
    lambda gold, lane, most: link(
        rules=[{"match": gold, "group": "gold"}],
        groups={"default": {"slots": 2, "max_slots": most}, "gold": {}, "backfill": {"slots": 1, "max_slots": 3}},
        backfill={"behind_records": 1000} if lane else None,
    ),
    st.sampled_from(["gold.*", "x|orders", "none"]),
    st.booleans(),
    st.integers(2, 6),
)


@given(st.lists(st.tuples(st.dictionaries(names, st.integers(1, 6)), settings_of, reports), min_size=1, max_size=4))
def test_in_all_that_may_happen_every_partition_is_copied_by_one_slot_of_one_group(
    history: list[tuple[dict[str, int], Link, dict[TopicPartition, Load]]],
) -> None:
    world = World()
    for topics, settings, loads in history:
        world.topics = {name: max(count, world.topics.get(name, 0)) for name, count in topics.items()}
        world.cycle(settings, loads=loads, history=2000)
        wanted = {TopicPartition(name, number) for name, count in world.topics.items() for number in range(count)}
        places = world.places()
        assert places.keys() == wanted
        assert all(len(groups) == 1 for groups in places.values())


def test_a_hundred_thousand_partitions_are_dealt_out_evenly_and_stay() -> None:
    settings = link(rules=[{"match": "t1.*", "group": "gold"}], groups={"default": {"slots": 30}, "gold": {"slots": 7}})
    world = World(**{f"t{number:04}": 50 for number in range(2_000)})
    with collector_paused():
        world.cycle(settings)
    assert len(world.places()) == 100_000
    for plan in world.plans.values():
        held = Counter(slot for topic in plan.topics for slot in topic.slots if slot is not None)
        assert not held or max(held.values()) - min(held.values()) <= 1
    with collector_paused():
        assert world.propose(settings).empty
