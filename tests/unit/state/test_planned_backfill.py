"""The limits of the backfill task group in a plan."""

import json

import pytest

from strait.state.codec import Unreadable, decode, encode
from strait.state.schema import Budget, Plan, PlannedBackfill

PLAN = Plan(link="l", group="backfill", version=1, producer_id=1, slots=1, published_at_ms=1)
NIGHT = PlannedBackfill(
    budget=Budget(bytes_per_second=9, slot_shares=(1.0,)), hours=("22:00-06:00",), timezone="Europe/Berlin"
)


def test_a_plan_without_them_can_be_read_by_older_versions() -> None:
    assert "backfill" not in json.loads(encode(PLAN)[1])
    key, value = encode(PLAN.model_copy(update={"backfill": NIGHT}))
    assert decode(Plan, key, value).backfill == NIGHT
    assert NIGHT.described == "at most 9 bytes/s, only 22:00-06:00 Europe/Berlin"


@pytest.mark.parametrize(("was", "becomes"), [("22:00-06:00", "22-6"), ("Europe/Berlin", "Europe/Berlni")])
def test_hours_that_mean_nothing_are_not_read(was: str, becomes: str) -> None:
    key, value = encode(PLAN.model_copy(update={"backfill": NIGHT}))
    with pytest.raises(Unreadable):
        decode(Plan, key, value.replace(was.encode(), becomes.encode()))
