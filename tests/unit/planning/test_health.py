import pytest

from strait.launch.base import Application, State
from strait.planning.status.health import (
    CLUSTER_SILENT_SECONDS,
    IN_CLUSTER,
    SILENT_SECONDS,
    STARTING_SECONDS,
    Hearing,
    start_of,
    trouble_of,
)
from strait.reasons import Reason
from strait.state.schema import Plan

PLAN = Plan(link="l", group="default", version=3, producer_id=7, slots=2, published_at_ms=0)
NOW_MS = 1_000_000_000


def application(state: State, *, submitted_seconds_ago: float = 3600, exit_code: int | None = None) -> Application:
    at_ms = NOW_MS - int(submitted_seconds_ago * 1000)
    return Application("strait-l-default", "1", state, "log", at_ms, exit_code)


def heard(slots_at_ms: dict[int, int]) -> dict[tuple[str, int], int]:
    return {("default", slot): at_ms for slot, at_ms in slots_at_ms.items()}


def test_a_slot_that_reports_anew_is_not_silent():
    hearing = Hearing(started_at=0.0)
    hearing.listen(heard({0: 100, 1: 100}), now=SILENT_SECONDS)
    hearing.listen(heard({0: 200, 1: 200}), now=2 * SILENT_SECONDS)
    assert hearing.silent(PLAN, now=2 * SILENT_SECONDS + 1) == ()


def test_a_report_that_was_heard_before_breaks_no_silence():
    hearing = Hearing(started_at=0.0)
    hearing.listen(heard({0: 100, 1: 100}), now=1.0)
    hearing.listen(heard({0: 200, 1: 100}), now=1.0 + SILENT_SECONDS + 1)
    assert hearing.silent(PLAN, now=1.0 + SILENT_SECONDS + 1) == (1,)


def test_a_slot_that_was_never_heard_is_silent_once_we_have_listened_long_enough():
    hearing = Hearing(started_at=50.0)
    assert hearing.silent(PLAN, now=50.0 + SILENT_SECONDS) == ()
    assert hearing.silent(PLAN, now=50.1 + SILENT_SECONDS) == (0, 1)


@pytest.mark.parametrize("state", [State.DEAD, State.FINISHED])
def test_an_application_that_ended_is_trouble_even_before_its_slots_fall_silent(state):
    trouble = trouble_of(PLAN, application(state, exit_code=9), silent=(), now_ms=NOW_MS)
    assert trouble is not None
    assert trouble.reason is Reason.APPLICATION_DEAD
    assert "exit code 9" in trouble.detail


def test_silent_slots_of_a_running_application_are_trouble_and_are_named():
    trouble = trouble_of(PLAN, application(State.RUNNING), silent=(0, 1), now_ms=NOW_MS)
    assert trouble is not None
    assert trouble.reason is Reason.SLOT_SILENT
    assert "0, 1" in trouble.detail


def test_an_application_has_time_to_start_before_silence_counts():
    young = application(State.SUBMITTED, submitted_seconds_ago=STARTING_SECONDS - 1)
    old = application(State.SUBMITTED, submitted_seconds_ago=STARTING_SECONDS + 1)
    assert trouble_of(PLAN, young, silent=(0,), now_ms=NOW_MS) is None
    assert trouble_of(PLAN, old, silent=(0,), now_ms=NOW_MS) is not None


def test_what_is_meant_to_stand_still_or_is_not_known_is_no_trouble():
    stopped = PLAN.model_copy(update={"stopped": True})
    assert trouble_of(stopped, application(State.FINISHED, exit_code=0), silent=(0, 1), now_ms=NOW_MS) is None
    assert trouble_of(PLAN, None, silent=(0, 1), now_ms=NOW_MS) is None
    assert trouble_of(PLAN, application(State.UNKNOWN), silent=(0, 1), now_ms=NOW_MS) is None


def test_a_driver_in_a_cluster_may_wait_for_room_and_then_has_time_to_start() -> None:
    """Ended sooner it would lose its place, and never run."""
    minutes = {after: application(State.SUBMITTED, submitted_seconds_ago=after * 60) for after in (5, 25)}
    assert trouble_of(PLAN, minutes[5], silent=(0,), now_ms=NOW_MS, patience=IN_CLUSTER) is None
    assert trouble_of(PLAN, minutes[25], silent=(0,), now_ms=NOW_MS, patience=IN_CLUSTER) is not None
    assert trouble_of(PLAN, minutes[5], silent=(0,), now_ms=NOW_MS) is not None, "nothing is waited for on this host"
    runs = application(State.RUNNING, submitted_seconds_ago=300)
    for seconds, expected in ((30.0, True), (100.0, False)):
        found = trouble_of(PLAN, runs, silent=(0,), now_ms=NOW_MS, running_seconds=seconds, patience=IN_CLUSTER)
        assert (found is None) == expected


def test_a_cluster_has_time_to_start_a_driver_again() -> None:
    hearing = Hearing(0.0)
    assert hearing.silent(PLAN, now=SILENT_SECONDS + 100.0) == (0, 1)
    assert hearing.silent(PLAN, now=SILENT_SECONDS + 100.0, patience=IN_CLUSTER) == ()
    assert hearing.silent(PLAN, now=CLUSTER_SILENT_SECONDS + 1.0, patience=IN_CLUSTER) == (0, 1)


def start(state: State | None, *heard: int, waited: float = 0.0, stopped: bool = False, standby: bool = False):
    found = None if state is None else application(state)
    plan = PLAN.model_copy(update={"stopped": stopped})
    ended = start_of(plan, found, heard, waited, 120.0, standby=standby)
    return None if ended is None else (ended.succeeded, ended.exited, ended.text)


def test_a_start_is_over_when_each_slot_has_reported_or_the_application_has_exited():
    assert start(State.SUBMITTED) is start(State.RUNNING, 0) is start(State.UNKNOWN, waited=119) is None
    assert start(State.RUNNING, 0, 1) == (True, False, "application strait-l-default: each of its slots reports (2)")
    assert start(State.DEAD, 0)[:2] == (False, True)
    assert start(State.FINISHED)[:2] == (False, True)
    assert start(None)[:2] == (False, False)
    assert start(None, stopped=True)[0] is True


def test_a_start_that_takes_too_long_names_the_slots_that_do_not_report():
    ended = start(State.RUNNING, 1, waited=120)
    assert ended == (False, False, "application strait-l-default: running for 120 s, no report from slots 0")


def test_a_standby_has_started_when_it_runs():
    assert start(State.SUBMITTED, standby=True) is None
    assert start(State.RUNNING, standby=True)[0] is True
