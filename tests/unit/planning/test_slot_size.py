"""What a plan says of slots with more partitions than they can take."""

from strait.config.groups import Group
from strait.planning.history.load import MOST_PARTITIONS_PER_SLOT
from strait.planning.risks.slot_size import crowded

FULL = MOST_PARTITIONS_PER_SLOT


def test_a_slot_takes_as_many_as_it_can() -> None:
    assert crowded({"default": Group()}, {"default": FULL}) == ()
    assert crowded({"default": Group(max_slots=2)}, {"default": 2 * FULL}) == (), "there will be another slot"


def test_with_more_the_plan_says_what_to_set() -> None:
    (risk,) = crowded({"default": Group(max_slots=2), "other": Group()}, {"default": 2 * FULL + 1, "other": 1})
    assert (risk.code, risk.topic) == ("crowded_slots", "")
    assert "20,001 partitions in at most 2 slots" in risk.detail
    assert "groups.default.max_slots to 3" in risk.detail


def test_a_group_that_is_not_configured_any_more_is_left_alone() -> None:
    assert crowded({}, {"gone": 9 * FULL}) == ()
