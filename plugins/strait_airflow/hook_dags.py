"""Runs DAGs as hooks of a failover, through the supervisor of the task that fails over."""

import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

_POLL_SECONDS = 1.0


def run_dag(dag: str, run: str, conf: Mapping[str, Any], timeout_seconds: float, check: Callable[[], None]) -> str:
    """Run a DAG to its end with this configuration and return its run's ID. A run of an earlier attempt is waited for
    instead, unless it has failed. Raises HookFailed."""
    from airflow.sdk.execution_time import task_runner

    from strait.errors import HookFailed

    state_of = task_runner.RuntimeTaskInstance.get_dagrun_state
    for number in itertools.count(1):
        name = f"{run}__{number}"
        if _start(dag, name, conf) or state_of(dag, name) != "failed":
            break
    until = time.monotonic() + timeout_seconds
    while (state := state_of(dag, name)) not in ("success", "failed"):
        if time.monotonic() >= until:
            paused = ", so the DAG may be paused" if state == "queued" else ""
            raise HookFailed(f"is {state} after {timeout_seconds:g} s{paused}: run {name}")
        check()
        time.sleep(_POLL_SECONDS)
    if state == "failed":
        raise HookFailed(f"failed: run {name}")
    return f"run {name}"


def _start(dag: str, run: str, conf: Mapping[str, Any]) -> bool:
    """Start a run. Return False if it exists already."""
    from airflow.sdk.exceptions import ErrorType
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import ErrorResponse, TriggerDagRun

    from strait.errors import HookFailed

    answer = task_runner.SUPERVISOR_COMMS.send(TriggerDagRun(dag_id=dag, run_id=run, conf=dict(conf)))
    if not isinstance(answer, ErrorResponse):
        return True
    if answer.error == ErrorType.DAGRUN_ALREADY_EXISTS:
        return False
    raise HookFailed(f"could not be started: {answer.error.value}")
