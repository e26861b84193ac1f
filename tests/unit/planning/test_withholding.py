"""What needs no approval is done while something else waits for it, and what waits stays as it was."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strait.config.links import Link
from strait.model import ClusterFacts, TopicFacts
from strait.planning.plan.draft import next_plans
from strait.planning.plan.foreign import Foreign, foreign_topics, replacing, without_foreign
from strait.planning.plan.planner import Proposal, Runs, compose, survey
from strait.planning.review.effects import effects, without_approval
from strait.planning.review.withholding import unapproved_of, without_actions
from strait.planning.topic_sync.actions import CreateTopic, GrowTopic
from strait.planning.topic_sync.sync import Memory, topic_sync
from strait.planning.topics.selection import NONE_CAME_BACK
from strait.planning.topics.start_offsets import StartOffsets
from strait.planning.topics.unapproved import NOTHING, Unapproved
from strait.state.schema import Decision, Plan, PlannedTopic
from strait.state.signing import Proof

LINK = {"source": "a", "destination": "b", "approval": "required", "configs": {"sync": True}}


def link(**changes: Any) -> Link:
    topics = {"allow_empty": True, **changes.pop("topics", {"regex": ["[a-z]+"]})}
    return Link.model_validate(LINK | {"topics": topics} | changes, strict=False)


def cluster(name: str, topics: dict[str, tuple[str, int]]) -> ClusterFacts:
    return ClusterFacts(
        name, name, {topic: TopicFacts(topic, known, count) for topic, (known, count) in topics.items()}
    )


@dataclass
class World:
    """A link, its clusters, and what it has published."""

    link: Link = field(default_factory=link)
    source: dict[str, tuple[str, int]] = field(default_factory=lambda: {"orders": ("s1", 2)})
    destination: dict[str, tuple[str, int]] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    runs: Runs = field(default_factory=dict)
    proofs: dict[str, Proof] = field(default_factory=dict)
    now_ms: int = 1_000_000

    @property
    def foreign(self) -> Foreign:
        return foreign_topics(self.link, self.plans, self.proofs)

    def _made(self, unapproved: Unapproved) -> Proposal:
        facts = cluster("a", self.source), cluster("b", self.destination)
        refused = unapproved.refused({})
        plans = without_foreign(self.plans, self.foreign)
        found = survey("l", self.link, *facts, self.runs, refused, plans.values(), NONE_CAME_BACK, unapproved)
        starts = StartOffsets(
            dict.fromkeys(found.new, 0), dict.fromkeys((asked.target for asked in found.new.values()), 0)
        )
        memory = Memory.of(plans.values())
        sync = topic_sync(self.link, found.destinations, *facts, memory, refused=refused)
        made = compose(self.link, found, starts, plans, stopped=False, sync=sync, now_ms=self.now_ms)
        carried = {} if unapproved is NOTHING else self.foreign
        return replacing(made, self.plans, self.proofs, carried, self.now_ms)

    def propose(self) -> Proposal:
        whole = self._made(NOTHING)
        left_out = unapproved_of(self.link, whole, {one.source for group in self.foreign.values() for one in group})
        return whole if left_out is None else replace(whole, permitted=without_actions(self._made(left_out)))

    def _perform(self, proposal: Proposal) -> None:
        self.now_ms += 1000
        for action in proposal.actions:
            if isinstance(action, CreateTopic):
                self.destination[action.topic] = (f"{action.topic}-{self.now_ms}", action.partitions)
            elif isinstance(action, GrowTopic):
                self.destination[action.topic] = (self.destination[action.topic][0], action.partitions)

    def _publish(self, proposal: Proposal) -> None:
        first = {(run.topic, run.partition): (run,) for run in proposal.first_runs(self.now_ms)}
        self.runs = {place: (*self.runs.get(place, ()), *first.get(place, ())) for place in {*self.runs, *first}}
        self.plans |= {plan.group: plan for plan in next_plans(proposal.drafts, self.plans, "l", 7, self.now_ms)}
        if self.proofs:
            groups = proposal.drafts
            self.proofs |= {group: Proof.LIMITED if group in proposal.limited else Proof.PROVEN for group in groups}

    def approve(self) -> None:
        """Until nothing is left to do."""
        for _ in range(9):
            if self.propose().empty:
                return
            self._perform(self.propose())
            self._publish(self.propose())
        raise AssertionError("it changes for ever")

    def cycle(self) -> list[str]:
        """Do what needs no approval; return what waits for it."""

        def part() -> Proposal | None:
            proposal = self.propose()
            return proposal.permitted or (None if effects(self.link, proposal) else proposal)

        if (first := part()) is not None:
            self._perform(first)
            second = part()
            assert second is not None
            self._publish(second)
        return [" ".join(str(effect).split()) for effect in effects(self.link, self.propose())]

    def topic(self, name: str) -> PlannedTopic:
        (found,) = (topic for plan in self.plans.values() for topic in plan.topics if topic.source == name)
        return found

    @property
    def planned(self) -> dict[str, str]:
        return {topic.source: topic.destination for plan in self.plans.values() for topic in plan.topics}

    @property
    def waits(self) -> dict[str, str]:
        return {item.topic: item.reason for plan in self.plans.values() for item in plan.waiting}

    def detail(self, topic: str) -> str:
        (found,) = (item.detail for plan in self.plans.values() for item in plan.waiting if item.topic == topic)
        return found


@pytest.fixture
def world() -> World:
    found = World()
    found.approve()
    assert found.planned == {"orders": "orders"}
    return found


def test_a_recreated_topic_is_copied_on_while_another_one_waits_for_approval(world: World) -> None:
    world.link = link(topics={"regex": ["[a-z]+"], "rules": [{"match": ".*", "on_loss": "restart"}]})
    world.approve()
    world.source |= {"foo": ("f1", 1)}
    assert world.cycle() == ["copies foo: from earliest", world.cycle()[1]]
    assert (world.planned, world.waits) == ({"orders": "orders"}, {"foo": "awaiting_approval"})
    since = world.detail("foo")
    assert since.startswith("since 1970-01-01 00:16:4") and since.endswith("UTC: copying it from earliest")
    world.source["orders"] = ("s2", 2)
    world.cycle()
    assert world.topic("orders").source_id == "s2" and world.waits == {"foo": "awaiting_approval"}
    assert world.detail("foo") == since
    assert not world.propose().permitted.drafts  # type: ignore[union-attr]  # it is done once
    world.approve()
    assert (set(world.planned), world.waits) == ({"orders", "foo"}, {})


def test_before_the_first_plan_nothing_is_done() -> None:
    world = World()
    assert world.propose().permitted is None and len(world.cycle()) == 2 and not world.plans


def test_no_part_is_done_for_another_cluster(world: World) -> None:
    (plan,) = world.plans.values()
    world.plans = {"default": plan.model_copy(update={"source_cluster": "other"})}
    world.source["foo"] = ("f1", 1)
    assert world.propose().permitted is None


def test_a_topic_that_was_away_comes_back_by_itself_but_one_that_was_left_does_not(world: World) -> None:
    there = world.source.pop("orders")
    assert (world.cycle(), world.waits) == ([], {"orders": "source_missing"})
    world.source["orders"] = there
    assert [str(effect) for effect in without_approval(world.link, world.propose())] == [
        "copies    orders: from where it stopped"
    ]
    assert (world.cycle(), world.planned, world.waits) == ([], {"orders": "orders"}, {})
    selecting, world.link = world.link, link(topics={"regex": ["[a-z]+"], "exclude": ["orders"]})
    assert (world.cycle(), world.planned) == (["leaves orders"], {"orders": "orders"})
    world.approve()
    assert world.planned == {}
    world.link = selecting
    for _ in range(2):
        assert (world.cycle(), world.planned) == (["copies orders: from where it stopped"], {})
        assert world.waits == {"orders": "awaiting_approval"}


def test_a_topic_that_is_away_is_not_left_without_approval(world: World) -> None:
    there = world.source.pop("orders")
    world.cycle()
    world.link = link(topics={"regex": ["[a-z]+"], "exclude": ["orders"]})
    assert (world.cycle(), world.waits) == (["leaves orders"], {"orders": "source_missing"})
    world.source["orders"] = there
    assert (world.cycle(), world.planned) == (["leaves orders"], {"orders": "orders"})


@pytest.mark.parametrize("proof", [Proof.OTHER_KEY, Proof.UNSIGNED])
def test_topics_of_a_plan_that_is_not_proven_leave_like_any_other(world: World, proof: Proof) -> None:
    """Another host has published the plan, or an older version."""
    world.source["logs"] = ("l1", 3)
    world.approve()
    before, world.proofs = world.topic("logs"), {"default": proof}
    world.link = link(topics={"regex": ["[a-z]+"], "exclude": ["logs"]})
    for _ in range(2):
        assert world.cycle() == ["leaves logs"]
        assert world.topic("logs") == before, "nothing is planned from it"
        assert world.proofs == {"default": Proof.LIMITED}, "nobody vouches for it"
        part = world.propose().permitted
        assert part is not None and not part.drafts, "it is published once"
    world.source["orders"] = ("s2", 2)
    world.link = link(
        topics={"regex": ["[a-z]+"], "exclude": ["logs"], "rules": [{"match": ".*", "on_loss": "restart"}]}
    )
    world.cycle()
    world.link = link(topics={"regex": ["[a-z]+"]})
    world.approve()
    assert (set(world.planned), world.proofs) == ({"orders", "logs"}, {"default": Proof.PROVEN})


def test_topics_of_a_plan_that_is_not_proven_leave_once_that_is_approved(world: World) -> None:
    world.source["logs"] = ("l1", 3)
    world.approve()
    world.proofs = {"default": Proof.OTHER_KEY}
    world.link = link(topics={"regex": ["[a-z]+"], "exclude": ["logs"]})
    (risk,) = world.propose().state_risks
    assert risk.code == "foreign_plan"
    world.approve()
    assert (world.planned, world.proofs) == ({"orders": "orders"}, {"default": Proof.PROVEN})
    assert world.plans["default"].replaced is not None and world.propose().state_risks == ()


def test_a_foreign_client_cannot_keep_a_link_from_being_planned(world: World) -> None:
    """It names a topic twice, and copies of others, and slots that the link does not have."""
    (plan,) = world.plans.values()
    loot = world.topic("orders").model_copy(update={"destination": "loot", "slots": (0, 900)})
    bait = world.topic("orders").model_copy(update={"source": "bait", "slots": (5, None)})
    slow = bait.model_copy(update={"source": "a" * 60 + "c", "slots": ()})
    forged = plan.model_copy(update={"version": 2, "topics": (bait, loot, slow)})
    world.link = link(topics={"regex": ["orders", "(a|aa)+b"]})
    world.plans, world.proofs = {"default": forged}, {"default": Proof.UNSIGNED}
    wanted = ["changes orders: destination topic loot -> orders", f"leaves {slow.source}", "leaves bait"]
    for _ in range(2):
        assert world.cycle() == wanted
        assert (world.topic("bait").slots, world.topic("orders").slots) == ((0, None), (0, 0))
        assert world.waits == {"orders": "awaiting_approval"}
        assert world.detail("orders").endswith("UTC: destination topic loot -> orders")
        assert world.proofs == {"default": Proof.LIMITED}
    world.approve()
    assert (world.planned, world.proofs) == ({"orders": "orders"}, {"default": Proof.PROVEN})


def test_rules_budgets_names_and_partitions_stay_as_they_are(world: World) -> None:
    world.source["orders"] = ("s1", 5)
    world.link = link(
        topics={
            "regex": ["[a-z]+"],
            "rules": [{"match": ".*", "on_loss": "continue", "class": "bulk"}],
            "budget": {"bytes_per_second": 9, "classes": {"bulk": 5}},
        },
        naming={"policy": "prefix", "prefix": "x."},
        groups={"default": {"slots": 2}},
    )
    before = world.topic("orders")
    said = world.cycle()
    assert [line.split(":")[0] for line in said] == [
        "budget of the link",
        "changes orders",
        "creates x.orders",
    ]
    assert "changes orders: destination topic orders -> x.orders" in said
    now = world.topic("orders")
    assert (now.destination, now.policy) == ("orders", before.policy)
    assert world.plans["default"].budgets == () and world.plans["default"].slots == 2
    assert now.slots[:2] == (0, 1) and now.slots[2:] == (None, None, None)
    assert world.waits == {"orders": "awaiting_approval"}


def test_the_lane_keeps_its_hours_and_its_budget_until_others_are_approved(world: World) -> None:
    for limits in ({"bytes_per_second": 7}, {"bytes_per_second": 5, **NIGHT}, None):
        before = world.plans.get("backfill")
        budget = {} if limits is None else {"budget": {"backfill": limits}}
        world.link = link(topics={"regex": ["[a-z]+"], **budget}, **(LANE if limits else {}))
        (line,) = world.cycle()
        assert line.startswith("budget of the link: ")
        now = world.plans.get("backfill")
        assert (now and now.backfill) == (before and before.backfill)
        world.approve()
    assert world.plans["backfill"].backfill is None


def test_what_halts_says_which_change_of_its_rule_is_not_approved(world: World) -> None:
    world.source["orders"] = ("s2", 2)
    assert world.cycle() == [] and world.waits == {"orders": "source_recreated"}
    world.link = link(topics={"regex": ["[a-z]+"], "rules": [{"match": ".*", "on_loss": "restart"}]})
    assert world.cycle() == ["changes orders: on_loss halt -> restart"]
    assert world.detail("orders").endswith("; not approved: on_loss halt -> restart")
    world.approve()
    assert world.waits == {}


def test_a_destination_that_is_gone_is_created_by_approval_or_by_a_decision(world: World) -> None:
    restarting = link(topics={"regex": ["[a-z]+"], "rules": [{"match": ".*", "on_loss": "restart"}]})
    for settings_now in (restarting, link()):
        world.link = settings_now
        world.approve()
        world.destination.clear()
        if settings_now is restarting:
            for _ in range(2):
                (line,) = world.cycle()
                assert line.startswith("creates orders") and world.waits == {"orders": "awaiting_approval"}
            world.approve()
    assert (world.cycle(), world.waits) == ([], {"orders": "destination_deleted"})
    (run, *_) = max(world.runs.values(), key=lambda runs: runs[-1].checkpoint_at_ms)[::-1]
    made = Decision(
        topic="orders",
        action="restart",
        source_id=run.source_id,
        destination_id=run.destination_id,
        by="ann",
        at_ms=9,
    )
    world.plans = {name: plan.model_copy(update={"decisions": (made,)}) for name, plan in world.plans.items()}
    assert [effect.verb for effect in without_approval(world.link, world.propose())] == ["copies", "creates"]
    for _ in range(4):
        assert world.cycle() == []
    assert (world.waits, world.planned, world.plans["default"].decisions) == ({}, {"orders": "orders"}, ())


def test_a_decision_about_a_source_needs_no_approval_neither_when_it_is_made_nor_when_it_is_over(world: World) -> None:
    world.source["orders"] = ("s2", 2)
    world.cycle()
    made = Decision(
        topic="orders",
        action="restart",
        source_id="s1",
        destination_id=world.destination["orders"][0],
        by="ann",
        at_ms=9,
    )
    world.plans = {name: plan.model_copy(update={"decisions": (made,)}) for name, plan in world.plans.items()}
    assert world.cycle() == [] and world.topic("orders").policy.on_loss == "restart"
    world.runs = {
        place: (*runs, runs[-1].model_copy(update={"source_id": "s2", "checkpoint_at_ms": world.now_ms}))
        for place, runs in world.runs.items()
    }
    assert world.cycle() == [] and world.topic("orders").policy.on_loss == "halt"


NAMES = st.sampled_from(["aa", "bb", "cc", "dd"])
TOPICS = st.dictionaries(NAMES, st.tuples(st.sampled_from(["1", "2"]), st.integers(1, 3)))
NIGHT = {"hours": ["22:00-06:00"], "timezone": "UTC"}
BUDGETS = st.sampled_from(
    [
        {},
        {"bytes_per_second": 5},
        {"bytes_per_second": 9, "classes": {"bulk": 3}},
        {"backfill": {"bytes_per_second": 7}},
        {"bytes_per_second": 5, "backfill": {"bytes_per_second": 3, **NIGHT}},
    ]
)
LANE: dict[str, Any] = {"groups": {"default": {}, "backfill": {}}, "backfill": {"behind_records": 1}}


@st.composite
def links(draw: st.DrawFn) -> Link:
    budget = draw(BUDGETS)
    rule = {"match": draw(NAMES), "on_loss": draw(st.sampled_from(["halt", "continue", "restart"]))}
    if "classes" in budget:
        rule["class"] = "bulk"
    return link(
        topics={"regex": ["[a-z]+"], "exclude": sorted(draw(st.sets(NAMES))), "rules": [rule], "budget": budget},
        naming=draw(st.sampled_from([{}, {"policy": "prefix", "prefix": "x."}])),
        **(LANE if "backfill" in budget else {"groups": {"default": {"slots": draw(st.integers(1, 2))}}}),
    )


@settings(max_examples=100, deadline=None)
@given(links(), TOPICS, st.lists(st.tuples(st.one_of(st.none(), links()), TOPICS), min_size=1, max_size=4))
def test_whatever_changes_no_unapproved_change_is_made_and_none_is_lost(
    first: Link, topics: dict[str, tuple[str, int]], history: list[tuple[Link | None, dict[str, tuple[str, int]]]]
) -> None:
    world = World(first, topics)
    world.approve()
    for changed, there in history:
        world.link, world.source = changed or world.link, there
        whole = world.propose()
        pending = effects(world.link, whole)
        if whole.permitted is not None:
            assert effects(world.link, whole.permitted) == ()
        assert (whole.permitted is None) is not bool(pending)
        before = world.planned
        world.cycle()
        assert effects(world.link, world.propose()) == pending, "the rest waits as it did"
        assert before.items() - world.planned.items() <= {
            (topic, before[topic]) for topic, reason in world.waits.items() if topic in before
        }, "what is copied goes on, or says why not"
        rest = world.propose()
        assert rest.empty if not pending else rest.permitted is not None and rest.permitted.empty
