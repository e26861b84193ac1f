from dataclasses import replace

import pytest

from strait.config.app_spec import AppSpec, Placed, PoolSpec
from strait.launch.applications import (
    DYING_TIMES,
    DYING_WINDOW_SECONDS,
    RESTART_LIMIT,
    RESTART_WINDOW_SECONDS,
    GiveUp,
    Leave,
    Replace,
    Submit,
    Update,
    decide,
    dying,
    held_until_ms,
    orphans,
)
from strait.launch.base import EXIT_NEEDS_MORE_CORES, Application, State

NOW_MS = 10_000_000
SPEC = AppSpec(
    link="l",
    group="default",
    source_name="a",
    source={"bootstrap.servers": "a:1", "sasl.password": "hidden"},
    destination_name="b",
    destination={"bootstrap.servers": "b:1"},
    slots=2,
    slot_memory_bytes=1,
    ledger_seconds=1,
    ledger_dir="l",
    checkpoint_dir="c",
)


def application(
    state: State, *, name: str = "strait-l-default", exit_code: int | None = None, at_ms: int = 0
) -> Application:
    return Application(name, str(at_ms), state, "log", at_ms, exit_code)


def ends(exit_code: int) -> list[Application]:
    """As many as are too many within the window, one a second."""
    return [application(State.DEAD, exit_code=exit_code, at_ms=NOW_MS - 1000 * n) for n in range(RESTART_LIMIT)]


def test_what_was_never_submitted_is_submitted():
    assert isinstance(decide(SPEC, None, None, [], NOW_MS), Submit)


@pytest.mark.parametrize("state", [State.SUBMITTED, State.RUNNING, State.UNKNOWN])
def test_what_runs_as_it_should_or_cannot_be_seen_is_left_alone(state):
    assert isinstance(decide(SPEC, application(state), SPEC, [], NOW_MS), Leave)


@pytest.mark.parametrize("state", [State.DEAD, State.FINISHED])
def test_what_ended_is_submitted_again(state):
    assert isinstance(decide(SPEC, application(state), SPEC, [application(state, at_ms=NOW_MS - 1)], NOW_MS), Submit)


def test_a_group_whose_plan_says_stopped_is_not_brought_back():
    assert isinstance(decide(None, application(State.FINISHED, exit_code=0), SPEC, [], NOW_MS), Leave)


def test_more_slots_need_a_new_submission_and_fewer_do_not():
    running = application(State.RUNNING)
    assert isinstance(decide(SPEC.model_copy(update={"slots": 3}), running, SPEC, [], NOW_MS), Replace)
    assert isinstance(decide(SPEC.model_copy(update={"slots": 1}), running, SPEC, [], NOW_MS), Leave)


def test_another_secret_needs_a_new_submission_and_is_not_told():
    wanted = SPEC.model_copy(update={"source": {**SPEC.source, "sasl.password": "new-secret"}})
    action = decide(wanted, application(State.RUNNING), SPEC, [], NOW_MS)
    assert action == Replace("other source")


def test_what_keeps_ending_is_left_to_a_person_until_the_oldest_leaves_the_window():
    found = decide(SPEC, ends(1)[0], SPEC, ends(1), NOW_MS)
    assert isinstance(found, GiveUp)
    assert found.until_ms == NOW_MS - 1000 * (RESTART_LIMIT - 1) + int(RESTART_WINDOW_SECONDS * 1000)
    assert isinstance(decide(SPEC, ends(1)[0], SPEC, ends(1), found.until_ms - 1), GiveUp)
    assert isinstance(decide(SPEC, ends(1)[0], SPEC, ends(1), found.until_ms), Submit)


def test_asking_for_more_cores_is_no_failure():
    found = ends(EXIT_NEEDS_MORE_CORES)
    more = SPEC.model_copy(update={"slots": SPEC.slots + 1})
    assert isinstance(decide(more, found[0], SPEC, found, NOW_MS), Submit)
    mixed = [found[0], *ends(1)[1:]]
    assert isinstance(decide(SPEC, mixed[0], SPEC, mixed, NOW_MS), Submit)
    mixed = [ends(1)[0], *found[1:]]
    assert isinstance(decide(SPEC, mixed[0], SPEC, mixed, NOW_MS), Submit)


@pytest.mark.parametrize("runs_with", [SPEC, None])
def test_what_asks_again_and_again_for_cores_that_no_host_has_is_held(runs_with):
    found = ends(EXIT_NEEDS_MORE_CORES)
    assert isinstance(decide(SPEC, found[0], runs_with, found, NOW_MS), GiveUp)
    assert isinstance(decide(SPEC, found[0], runs_with, found[:-1], NOW_MS), Submit)


def test_one_that_was_stopped_and_started_again_and_again_has_not_failed():
    stopped = [replace(one, state=State.FINISHED, exit_code=0) for one in ends(1)]
    assert held_until_ms(stopped, NOW_MS) == 0
    assert held_until_ms([*ends(1)[:2], *stopped[2:]], NOW_MS) == 0


def test_times_of_a_clock_that_was_ahead_hold_nothing_until_then():
    day_ms = 86_400_000
    ahead = [replace(one, submitted_at_ms=one.submitted_at_ms + day_ms) for one in ends(1)]
    assert isinstance(decide(SPEC, ahead[0], SPEC, ahead, NOW_MS), Submit)
    assert isinstance(decide(SPEC, ahead[0], SPEC, ahead, NOW_MS + day_ms), GiveUp)


def test_one_that_runs_now_is_not_held_back():
    assert held_until_ms([application(State.RUNNING, at_ms=NOW_MS), *ends(1)], NOW_MS) == 0


def test_only_what_runs_and_belongs_to_no_link_is_an_orphan():
    mine, stranger = application(State.RUNNING), application(State.RUNNING, name="strait-gone-default")
    ended = application(State.DEAD, name="strait-old-default")
    assert orphans([mine, stranger, ended], known={mine.name}) == [stranger]


POOL = PoolSpec(
    pool="p",
    slots=2,
    slot_memory_bytes=1,
    checkpoint_dir="c",
    members=(SPEC,),
    placement=(Placed(link="l", group="default", slot=0, task=0),),
)


def test_a_pool_follows_other_members_and_another_placement_without_a_restart():
    running = application(State.RUNNING, name="strait-pool-p")
    other = SPEC.model_copy(update={"link": "other"})
    for changed in ({"members": (SPEC, other)}, {"placement": ()}, {"members": (), "slots": 1}):
        assert isinstance(decide(POOL.model_copy(update=changed), running, POOL, [], NOW_MS), Update)
    assert isinstance(decide(POOL.model_copy(update={"loads": {"l/default/0": 5.0}}), running, POOL, [], NOW_MS), Leave)
    assert isinstance(decide(POOL, running, POOL, [], NOW_MS), Leave)


def test_a_pool_is_replaced_for_more_tasks_or_another_version():
    running = application(State.RUNNING, name="strait-pool-p")
    for changed in ({"slots": 3}, {"strait": "0.0.1"}, {"slot_memory_bytes": 2}):
        assert isinstance(decide(POOL.model_copy(update=changed), running, POOL, [], NOW_MS), Replace)
    assert isinstance(decide(POOL, running, SPEC, [], NOW_MS), Replace)


def died(*minutes_ago: float, exit_code: int = 1) -> list[Application]:
    return [application(State.DEAD, exit_code=exit_code, at_ms=NOW_MS - round(60_000 * m)) for m in minutes_ago]


def test_an_application_that_dies_every_few_minutes_is_dying_though_it_is_submitted_again_each_time():
    history = [application(State.RUNNING, at_ms=NOW_MS), *died(3, 6, 9)]
    assert dying(history, NOW_MS) == history[1:]
    assert DYING_TIMES == 3


def test_fewer_deaths_older_ones_and_those_that_ask_for_cores_are_not_dying():
    assert dying(died(3, 6), NOW_MS) == ()
    assert dying(died(3, 6, DYING_WINDOW_SECONDS / 60 + 1), NOW_MS) == ()
    assert dying(died(1, 2, 3, 4, exit_code=EXIT_NEEDS_MORE_CORES), NOW_MS) == ()
    assert dying([application(State.FINISHED, at_ms=NOW_MS)] * 5, NOW_MS) == ()
