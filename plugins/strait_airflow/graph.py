"""The tasks of a link's DAG in Airflow's context: their input and their output.

monitor -> submit -> healthy, mapped over the applications that need an action -> metrics -> verdict. `monitor` fails only
if Airflow itself does: its failed steps are judged by `verdict`, whose state is that of the run.
"""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from strait.waiting import unix_ms
from strait_airflow.noticing import JUDGED, Judged
from strait_airflow.steps import Run, begin, last, utc_text

if TYPE_CHECKING:
    from airflow.sdk import Asset
    from airflow.sdk.definitions.context import Context

log = logging.getLogger(__name__)

MONITOR, SUBMIT, HEALTHY, METRICS, VERDICT = "monitor", "submit", "healthy", "metrics", "verdict"
OUTCOME, FAILED, NEEDS, NOTE = "outcome", "failed", "needs", "note"
"""Keys of XComs: of `monitor`; of a failed task; of `metrics`; of `verdict`, for the run's note."""

RETRIES = 1
"""Of each task: stopping Airflow fails the running tasks."""


def monitor(link: str, asset: "Asset", context: "Context") -> list[dict[str, Any]]:
    """Run `control.monitor`. Return the applications to map over."""
    from strait_airflow import control

    notices = [event.extra["payload"] for event in _events(asset, context) if "payload" in event.extra]
    store, restart = context["asset_state_store"][asset], context["params"]["restart"]
    found = control.monitor(link, notices, store, _run(context), restart=restart)
    context["ti"].xcom_push(OUTCOME, {**found._asdict(), "due": []})
    return found.due


def submit(link: str, asked: Mapping[str, Any], context: "Context") -> dict[str, Any]:
    """Run `submitting.submit` for one application. It is restarted, once, if an operator clears only this task instance."""
    from strait_airflow import submitting

    ti, run = context["ti"], _run(context)
    attempt = attempt_of(ti.try_number, ti.max_tries)
    restart = asked["restart"] if attempt == 1 else ""
    if cleared_alone(ti.try_number, ti.max_tries, run.cleared, asked["cleared"]):
        restart = "the task was cleared"
    with _reported(context):
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


def metrics(link: str, context: "Context") -> str:
    """Run `control.metrics`, also after a failure."""
    from strait_airflow import control

    outcome = _outcome(context)
    if not outcome.get("measure", True):
        begin(link)
        return last("not measured: " + ("its destination does not respond" if outcome["failures"] else outcome["done"]))
    with _reported(context):
        line, needs = control.metrics(link)
    context["ti"].xcom_push(NEEDS, [[need.id, need.line] for need in needs])
    return last(line)


def verdict(link: str, asset: "Asset", context: "Context") -> str:
    """Fail with one line for each thing that needs an operator, whether this run found it or an earlier one.

    Raises:
        AirflowFailException
    """
    from strait_airflow.errors import raise_for
    from strait_airflow.run_notes import NOTE_CHARACTERS
    from strait_airflow.verdict import STILL, Incident, note_lines, verdict_of

    begin(link)
    ti, run, outcome = context["ti"], _run(context), _outcome(context)
    states = _states(context)
    failed = [*_failures(context, states)]
    store = context["asset_state_store"][asset]
    judged = Judged.of(store.get(JUDGED))
    found = ti.xcom_pull(task_ids=METRICS, key=NEEDS, default=None)
    nothing_new = not outcome.get("measure", True) and not outcome["failures"]
    needs = None if found is None else [Incident(*each) for each in found]
    result = verdict_of(
        [*outcome.get("failures", ()), *(text for _, text in failed)],
        needs,
        judged,
        run.id,
        unix_ms(),
        submit_failed=any(task == SUBMIT for task, _ in failed),
    )
    if nothing_new:  # the run that has planned instead has judged, or will
        store.set(JUDGED, judged.ending(run.id, unix_ms()).data())
        if judged.known:
            raise_for(f"{STILL}: {', '.join(judged.known)}; {outcome['done']}", retriable=False)
        return last(outcome["done"])
    store.set(JUDGED, result.judged.data())
    since = utc_text(result.since_ms).removesuffix(" UTC")
    lines = note_lines(result, outcome.get("reasons", ()), f"done: {outcome.get('done', '')}", since)
    ti.xcom_push(NOTE, "\n".join(lines)[: NOTE_CHARACTERS + 1])  # so that the note shows that it is cut
    for line in result.lines:
        log.error("needs an operator: %s", line)
    if result.lines:
        more = f" (and {len(result.lines) - 1} more, above)" if len(result.lines) > 1 else ""
        raise_for(f"{result.headline}{more}", retriable=False)
    return last(f"{outcome['done']}; {result.headline}")


def _run(context: "Context") -> Run:
    run = context["dag_run"]
    after_ms = round(run.run_after.timestamp() * 1000)
    by = run.triggering_user_name or "Airflow"
    return Run(run.run_id, after_ms, run.clear_number or 0, by, manual=str(run.run_type) == "manual")


def _events(asset: "Asset", context: "Context") -> Sequence[Any]:
    found: Sequence[Any] = context["triggering_asset_events"].get(asset, ())
    return found


def _outcome(context: "Context") -> Mapping[str, Any]:
    """Return the outcome of `monitor`; empty if it failed."""
    found = context["ti"].xcom_pull(task_ids=MONITOR, key=OUTCOME, default=None)
    return found if isinstance(found, dict) else {"done": "", "failures": [], "reasons": []}


@contextmanager
def _reported(context: "Context") -> Iterator[None]:
    """Pass the message of a failed task on to `verdict`."""
    from airflow.sdk.exceptions import AirflowException

    try:
        yield
    except AirflowException as error:
        context["ti"].xcom_push(FAILED, str(error))
        raise


def plain(text: str | None) -> str | None:
    """Return the text of an XCom; the triggerer encodes those that it pushes once more, as JSON."""
    return json.loads(text) if text is not None and text.startswith('"') else text


def _states(context: "Context") -> Mapping[str, str]:
    """Return the task instances before this one in the run -> their states; a mapped one is `<task>_<index>`."""
    ti = context["ti"]
    found = ti.get_task_states(dag_id=ti.dag_id, task_ids=[MONITOR, SUBMIT, HEALTHY, METRICS], run_ids=[ti.run_id])
    return {name: str(state) for name, state in found.get(ti.run_id, {}).items()}


def _failures(context: "Context", states: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the failed task instances with their messages. A start that failed because the application exited is none: it
    is submitted again, and one that exits again and again is a need."""
    ti = context["ti"]
    for name, state in sorted(states.items()):
        if state != "failed":
            continue
        task, _, index = name.partition("_")
        where: dict[str, Any] = {"map_indexes": int(index)} if index else {}
        text = plain(ti.xcom_pull(task_ids=task, key=FAILED, default=None, **where))
        if text is None:
            yield task, f"task {name}: it ended without a result; its log shows the cause"
        elif text:
            yield task, str(text)
