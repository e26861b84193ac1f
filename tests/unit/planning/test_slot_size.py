"""What a plan says of slots with more partitions than they can take."""

from strait.config.links import Link
from strait.planning.history.load import MOST_PARTITIONS_PER_SLOT
from strait.planning.risks.slot_size import crowded
from strait.state.schema import Plan
from support.model.plans import classed_plan

FULL = MOST_PARTITIONS_PER_SLOT


def link(**group: int) -> Link:
    base = {"source": "a", "destination": "b", "topics": {"regex": [".*"]}, "groups": {"default": {"slots": 1} | group}}
    return Link.model_validate(base, strict=False)


def plan(partitions: int) -> Plan:
    one = classed_plan({"t": ""})
    topic = one.topics[0].model_copy(update={"slots": (None, *[0] * partitions)})
    return one.model_copy(update={"topics": (topic,)})


def test_a_slot_takes_as_many_as_it_can() -> None:
    assert crowded(link(), {"default": plan(FULL)}, {}) == ()
    assert crowded(link(max_slots=2), {"default": plan(2 * FULL)}, {}) == (), "there will be another slot"


def test_with_more_the_plan_says_what_to_set() -> None:
    (risk,) = crowded(link(max_slots=2), {"default": plan(2 * FULL + 1)}, {})
    assert (risk.code, risk.topic) == ("crowded_slots", "")
    assert "20,001 partitions in at most 2 slots" in risk.detail
    assert "groups.default.max_slots to 3" in risk.detail


def test_topics_that_are_created_first_count_already() -> None:
    assert crowded(link(), {}, {"a": FULL}) == ()
    (risk,) = crowded(link(), {"default": plan(1)}, {"a": FULL})
    assert risk.code == "crowded_slots"
