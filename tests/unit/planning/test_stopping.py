"""Stopping and starting change whether a link's groups run, and nothing else of their plans."""

from dataclasses import replace

import pytest

from strait.planning.plan.draft import Draft
from strait.planning.plan.stopping import with_stopped
from strait.reasons import Reason
from strait.state.schema import PlannedTopic, Waiting

EMPTY = Draft(slots=1, stopped=False, topics=(), waiting=(), budgets=())
PAUSED = Waiting(topic="orders", partitions=(0,), reason=Reason.PAUSED, detail="")


def copying(*slots: int | None) -> Draft:
    topic = PlannedTopic(source="orders", destination="orders", source_id="s", destination_id="d", slots=slots)
    return replace(EMPTY, topics=(topic,))


def test_every_group_is_stopped_and_nothing_else_changes() -> None:
    drafts = {"default": copying(0, None), "bulk": EMPTY}
    stopped = with_stopped(drafts, True)
    assert all(of.stopped for of in stopped.values())
    assert {group: replace(of, stopped=False) for group, of in stopped.items()} == drafts


@pytest.mark.parametrize(
    ("group", "draft", "runs"),
    [
        ("default", EMPTY, True),
        ("bulk", EMPTY, False),
        ("bulk", copying(None), False),
        ("bulk", copying(None, 0), True),
        ("bulk", replace(EMPTY, waiting=(PAUSED,)), True),
    ],
)
def test_a_group_is_started_if_it_has_work(group: str, draft: Draft, runs: bool) -> None:
    assert with_stopped({group: replace(draft, stopped=True)}, False)[group].stopped is not runs
