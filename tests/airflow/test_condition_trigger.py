"""The trigger that waits for a condition in the triggerer."""

import asyncio
from typing import Any

import pytest

from strait.errors import OffsetsPending
from strait_airflow import conditions
from strait_airflow.conditions import REACHED, ConditionTrigger

pytestmark = [pytest.mark.airflow, pytest.mark.core]


class Condition:
    """It holds, but its result is known only when it is asked for the third time."""

    results = 0

    def look(self) -> str:
        return ""

    def result(self) -> dict[str, Any]:
        self.results += 1
        if self.results < 3:
            raise OffsetsPending("b", "not yet")
        return {"link": "shop"}

    def close(self) -> None:
        pass


def test_a_result_that_is_not_known_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    condition = Condition()
    monkeypatch.setattr(conditions, "condition_of", lambda _: condition)
    trigger = ConditionTrigger(condition={"link": "shop"}, every_seconds=0.01)

    async def first() -> Any:
        async for event in trigger.run():
            return event.payload
        return None

    assert asyncio.run(asyncio.wait_for(first(), 20)) == {REACHED: {"link": "shop"}}
    assert condition.results == 3
