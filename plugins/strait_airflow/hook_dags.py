"""Failover hooks that are DAGs: the failover task triggers them through its supervisor, and waits for their end."""

import time
import uuid
from collections.abc import Mapping
from typing import Any

_POLL_SECONDS = 1.0


def run_dag(dag: str, conf: Mapping[str, Any], timeout_seconds: float) -> str:
    """Run a DAG with this configuration and wait until it ends. Return a text with the run's ID. Raises HookFailed."""
    from airflow.sdk.execution_time import task_runner
    from airflow.sdk.execution_time.comms import ErrorResponse, TriggerDagRun

    from strait.errors import HookFailed

    run = f"strait-failover__{uuid.uuid4().hex}"
    answer = task_runner.SUPERVISOR_COMMS.send(TriggerDagRun(dag_id=dag, run_id=run, conf=dict(conf)))
    if isinstance(answer, ErrorResponse):
        raise HookFailed(f"could not be begun: {answer.error.value}")
    until = time.monotonic() + timeout_seconds
    while True:
        state = task_runner.RuntimeTaskInstance.get_dagrun_state(dag, run)
        if state == "success":
            return f"run {run}"
        if state == "failed":
            raise HookFailed(f"failed: run {run}")
        if time.monotonic() >= until:
            paused = ", so the DAG may be paused" if state == "queued" else ""
            raise HookFailed(f"is {state} after {timeout_seconds:g} s{paused}: run {run}")
        time.sleep(_POLL_SECONDS)
