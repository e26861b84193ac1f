"""The tasks of a link's DAG in Airflow's context: their input and their output.

monitor -> submit -> healthy, mapped over the applications that need an action -> metrics -> verdict. `monitor` fails only
if Airflow itself does: its failed steps are judged by `verdict`, whose state is that of the run.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from strait.waiting import unix_ms
from strait_airflow.noticing import JUDGED, Judged
from strait_airflow.steps import (
    FAILED,
    HEALTHY,
    METRICS,
    MONITOR,
    NEEDS,
    NOTE,
    OUTCOME,
    SUBMIT,
    Run,
    begin,
    last,
    utc_text,
)
from strait_airflow.stored import notices_of

if TYPE_CHECKING:
    from airflow.sdk import Asset
    from airflow.sdk.definitions.context import Context

    from strait_airflow.verdict import Failure, Verdict

log = logging.getLogger(__name__)

RETRIES = 1
"""Of each task: stopping Airflow fails the running tasks."""


def monitor(link: str, asset: "Asset", context: "Context") -> list[dict[str, Any]]:
    """Run `control.monitor`, and give complete hours of topics to their assets. Return the applications to map over."""
    from strait_airflow import control
    from strait_airflow.hours import emit_hours

    notices = notices_of(event.extra for event in _events(asset, context))
    store, restart = context["asset_state_store"][asset], context["params"]["restart"]
    found = control.monitor(link, notices, store, _run(context), restart=restart)
    emit_hours(link, store, context)
    plain = {"due": [], "failures": _plain(found.failures), "planning": _plain(found.planning)}
    context["ti"].xcom_push(OUTCOME, found._asdict() | plain)
    return found.due


def _plain(failures: "Iterable[Failure]") -> list[list[str]]:
    """Return failures as `Failure(*each)` takes them from an XCom."""
    return [list(failure) for failure in failures]


def submit(link: str, asked: Mapping[str, Any], context: "Context") -> dict[str, Any]:
    """Run `submitting.submit` for one application. It is restarted, once, if an operator clears only this task instance."""
    from strait_airflow import submitting

    ti, run = context["ti"], _run(context)
    attempt = attempt_of(ti.try_number, ti.max_tries)
    restart = asked["restart"] if attempt == 1 else ""
    if cleared_alone(ti.try_number, ti.max_tries, run.cleared, asked["cleared"]):
        restart = "the task was cleared"
    with _reported(link, context):
        return submitting.submit(link, asked, restart=restart)


def attempt_of(try_number: int, max_tries: int) -> int:
    """Return the number of the attempt since the task instance was last cleared, from 1."""
    return try_number - (max_tries - RETRIES)


def cleared_alone(try_number: int, max_tries: int, cleared: int, cleared_before: int) -> bool:
    """Return whether this is the first attempt after the task instance was cleared, and `monitor` was not cleared too.

    Args:
        cleared: how often tasks of the run were cleared.
        cleared_before: the same when `monitor` ran.
    """
    return try_number > 1 and attempt_of(try_number, max_tries) == 1 and cleared > cleared_before


def verdict(link: str, asset: "Asset", context: "Context") -> str:
    """Fail if something needs an operator that no run was red for within a day, with one line for each thing.

    Raises:
        AirflowFailException
    """
    from strait_airflow.errors import raise_for
    from strait_airflow.run_notes import NOTE_CHARACTERS
    from strait_airflow.verdict import KNOWN, note_lines, unchanged

    begin(link)
    ti, run, outcome = context["ti"], _run(context), _outcome(context)
    store, now_ms = context["asset_state_store"][asset], unix_ms()
    judged = Judged.of(store.get(JUDGED))
    if outcome["measure"] or outcome["failures"]:
        result = _verdict(context, outcome, judged, run, now_ms)
    else:  # the run that has planned instead has judged, or will
        result = unchanged(judged, run.id, now_ms)
    store.set(JUDGED, result.judged.data())
    lines = note_lines(result, outcome["reasons"], f"done: {outcome['done']}")
    ti.xcom_push(NOTE, "\n".join(lines)[: NOTE_CHARACTERS + 1])  # so that the note shows that it is cut
    for line in result.lines:
        if result.is_red:
            log.error("needs an operator: %s", line)
        else:
            log.warning("%s %s: %s", KNOWN, utc_text(result.since_ms), line)
    if result.is_red:
        more = f" (and {len(result.lines) - 1} more, above)" if len(result.lines) > 1 else ""
        raise_for(f"{result.headline}{more}", retriable=False)
    return last(f"{outcome['done']}; {result.headline}")


def _verdict(context: "Context", outcome: Mapping[str, Any], judged: Judged, run: Run, now_ms: int) -> "Verdict":
    from strait_airflow.verdict import Failure, Incident, verdict_of

    failed = dict(_failures(context, _states(context)))
    found = decoded(context["ti"].xcom_pull(task_ids=METRICS, key=NEEDS, default=None))
    return verdict_of(
        [Failure(*each) for each in outcome["planning"]],
        [*(Failure(*each) for each in outcome["failures"]), *failed.values()],
        None if found is None else [Incident(*each) for each in found["found"]],
        judged,
        run.id,
        now_ms,
        partial=found is not None and found["partial"],
        planned=outcome["planned"],
        submit_failed=any(task.startswith(SUBMIT) for task in failed),
    )


def _run(context: "Context") -> Run:
    run = context["dag_run"]
    after_ms = round(run.run_after.timestamp() * 1000)
    by = run.triggering_user_name or "Airflow"
    return Run(run.run_id, after_ms, run.clear_number or 0, by, manual=run.run_type == "manual")


def _events(asset: "Asset", context: "Context") -> Sequence[Any]:
    found: Sequence[Any] = context["triggering_asset_events"].get(asset, ())
    return found


def _outcome(context: "Context") -> Mapping[str, Any]:
    """Return the outcome of `monitor`; one without anything if it failed."""
    found = context["ti"].xcom_pull(task_ids=MONITOR, key=OUTCOME, default=None)
    nothing = {"done": "", "failures": [], "planning": [], "reasons": [], "measure": True, "planned": False}
    return nothing | found if isinstance(found, dict) else nothing


@contextmanager
def _reported(link: str, context: "Context") -> Iterator[None]:
    """Pass the failure of a task on to `verdict`."""
    from strait.errors import StraitError
    from strait_airflow.errors import failure_of, raise_for

    try:
        yield
    except StraitError as error:
        failure = failure_of(error, link)
        context["ti"].xcom_push(FAILED, list(failure))
        raise_for(failure.text, retriable=error.retriable)


def decoded(value: Any) -> Any:
    """Return the value of an XCom; the triggerer encodes those that it pushes once more, as JSON."""
    if not (isinstance(value, str) and value.startswith(('"', "[", "{"))):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value  # a worker's


def _states(context: "Context") -> Mapping[str, str]:
    """Return the task instances before this one in the run -> their states; a mapped one is `<task>_<index>`."""
    ti = context["ti"]
    found = ti.get_task_states(dag_id=ti.dag_id, task_ids=[MONITOR, SUBMIT, HEALTHY, METRICS], run_ids=[ti.run_id])
    return {name: str(state) for name, state in found.get(ti.run_id, {}).items()}


def _failures(context: "Context", states: Mapping[str, str]) -> "Iterator[tuple[str, Failure]]":
    """Yield the failed task instances with their failures. A start that failed because the application exited is none: it
    is submitted again, and one that exits again and again is a need."""
    from strait_airflow.verdict import Failure

    ti = context["ti"]
    for name, state in sorted(states.items()):
        if state != "failed":
            continue
        task, _, index = name.partition("_")
        where: dict[str, Any] = {"map_indexes": int(index)} if index else {}
        told = decoded(ti.xcom_pull(task_ids=task, key=FAILED, default=None, **where))
        if told is None:
            hint = _OF_TRIGGERER if task in (HEALTHY, METRICS) else ""
            yield name, Failure(f"{task}: no result", f"task {name}: it ended without a result{hint}; see its log")
        elif told:
            yield name, Failure(*told)


_OF_TRIGGERER = ", as when Airflow's triggerer does not run"
