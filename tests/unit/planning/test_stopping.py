"""Stopping and starting change whether a link's groups run, and nothing else of their plans."""

from dataclasses import replace

import pytest

from strait.planning.plan.draft import Draft
from strait.planning.plan.stopping import stopped_by, with_stopped
from strait.reasons import Reason
from strait.state.codec import decode, encode
from strait.state.schema import Pause, Plan, PlannedTopic, Waiting

EMPTY = Draft(slots=1, stopped=False, topics=(), waiting=(), budgets=())
STOP = Pause(by="ann", at_ms=0, reason="moving")
PAUSED = Waiting(topic="orders", partitions=(0,), reason=Reason.PAUSED, detail="")


def copying(*slots: int | None) -> Draft:
    topic = PlannedTopic(source="orders", destination="orders", source_id="s", destination_id="d", slots=slots)
    return replace(EMPTY, topics=(topic,))


def test_every_group_is_stopped_and_nothing_else_changes() -> None:
    drafts = {"default": copying(0, None), "bulk": EMPTY}
    stopped = with_stopped(drafts, STOP)
    assert all(of.stopped for of in stopped.values())
    assert {group: replace(of, stopped=False, stop=None) for group, of in stopped.items()} == drafts


def test_who_stopped_a_link_is_kept_until_it_is_started() -> None:
    stopped = with_stopped({"default": copying(0)}, STOP)
    assert with_stopped(stopped, STOP.model_copy(update={"by": "bob"})) == stopped
    told = [as_plan(draft) for draft in stopped.values()]
    assert stopped_by(told) == "the link was stopped by ann at 1970-01-01 00:00:00 UTC: moving"
    assert stopped_by([as_plan(draft) for draft in with_stopped(stopped, None).values()]) == ""
    assert stopped_by([as_plan(replace(EMPTY, stopped=True))]) == "the link was stopped; by whom is not known"


def test_only_the_plan_of_a_stopped_link_is_one_that_older_versions_cannot_read() -> None:
    running, stopped = as_plan(EMPTY), as_plan(with_stopped({"default": EMPTY}, STOP)["default"])
    assert b'"stop"' not in encode(running)[1]
    assert [decode(Plan, *encode(plan)) for plan in (running, stopped)] == [running, stopped]


def as_plan(draft: Draft) -> Plan:
    return draft.as_plan(link="l", group="default", version=1, producer_id=0, now_ms=0)


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
    assert with_stopped({group: replace(draft, stopped=True)}, None)[group].stopped is not runs
