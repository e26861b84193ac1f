"""A small client of Airflow's REST API (v2), with the few calls that the demo and the tests need."""

import contextlib
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import httpx

from strait.embedded.waiting import wait_for
from strait.errors import SetupError

Json = dict[str, Any]

_PAGE = 100  # Airflow's default maximum
_LATE_TRIES = 2
_LOCKED_TRIES = 5
_LOCKED_SECONDS = 1.0
"""Seconds between retries: Airflow answers 500 for as long as another of its processes holds the lock of its SQLite
file."""


class AirflowClient:
    """Signs in automatically, and again when its token has expired. Every error response of the API is a SetupError."""

    def __init__(self, url: str, user: str, password: str) -> None:
        self.url = url.rstrip("/")
        self._login = {"username": user, "password": password}
        self._http = httpx.Client(base_url=self.url, timeout=30, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def unpause(self, dag: str) -> None:
        """Unpause a DAG, so that its schedule runs it."""
        self._call("PATCH", f"/api/v2/dags/{dag}", params={"update_mask": "is_paused"}, json={"is_paused": False})

    def dags(self) -> list[Json]:
        """Return every DAG that the API server knows."""
        return self._all("/api/v2/dags", "dags")

    def import_errors(self) -> list[Json]:
        """Return the files in the DAGs directory that could not be imported: `filename` and `stack_trace`."""
        return self._all("/api/v2/importErrors", "import_errors")

    def trigger(self, dag: str, conf: Mapping[str, Any] | None = None) -> str:
        """Start a run now. Returns its ID, which is generated here, so that the request may be sent again."""
        run_id = f"manual__{datetime.now(UTC).isoformat()}_{secrets.token_hex(4)}"
        asked: Json = {"dag_run_id": run_id, "logical_date": None, "conf": dict(conf or {})}
        self._call("POST", f"/api/v2/dags/{dag}/dagRuns", json=asked)
        return run_id

    def runs(self, dag: str) -> list[Json]:
        """Return the latest runs of a DAG, newest first."""
        params = {"limit": _PAGE, "order_by": "-run_after"}
        return cast(list[Json], self._call("GET", f"/api/v2/dags/{dag}/dagRuns", params=params)["dag_runs"])

    def run(self, dag: str, run_id: str) -> Json:
        return self._call("GET", f"/api/v2/dags/{dag}/dagRuns/{run_id}")

    def task_states(self, dag: str, run_id: str) -> dict[str, str | None]:
        """Return task -> state of one run; None for a task that was not scheduled yet. Instance n of a mapped task is
        `<task>[<n>]`, here and in all calls."""
        return {_task(item): item["state"] for item in self._task_instances(dag, run_id)}

    def attempts(self, dag: str, run_id: str) -> dict[str, int]:
        """Return task ID -> how often it was started in one run; 0 also for one that Airflow failed before its
        start."""
        return {_task(item): int(item["try_number"]) for item in self._task_instances(dag, run_id)}

    def tries(self, dag: str, run_id: str, task: str) -> list[int]:
        """Return the attempts of a task that have a log. One that was queued and that no worker began has none, and is absent
        here as in the UI, though it is counted."""
        name, index = _place(task)
        path = f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances/{name}"
        found = self._call("GET", f"{path}/{index}/tries" if index >= 0 else f"{path}/tries")["task_instances"]
        return sorted(int(item["try_number"]) for item in found if item["try_number"])

    def map_names(self, dag: str, run_id: str, task: str) -> list[str]:
        """Return the names of a mapped task's instances, in order."""
        found = [item for item in self._task_instances(dag, run_id) if item["task_id"] == task]
        return [str(item["rendered_map_index"]) for item in sorted(found, key=lambda item: item["map_index"])]

    def task_log(self, dag: str, run_id: str, task: str, attempt: int = 1) -> str:
        """Return the log of one attempt of a task, a line for each event."""
        return "\n".join(_log_line(event) for event in self._log_events(dag, run_id, task, attempt))

    def task_errors(self, dag: str, run_id: str, task: str, attempt: int = 1) -> list[str]:
        """Return the exceptions of one attempt of a task, a line for each: `<type>: <text>`."""
        return [line for event in self._log_events(dag, run_id, task, attempt) for line in _exceptions(event)]

    def clear(self, dag: str, run_id: str, task: str = "") -> None:
        """Clear one task instance with those after it, or all of a run."""
        body: Json = {"dry_run": False, "only_failed": False}
        if not task:
            self._call("POST", f"/api/v2/dags/{dag}/dagRuns/{run_id}/clear", json=body)
            return
        name, index = _place(task)
        of_run = {"dag_run_id": run_id, "include_downstream": True, "task_ids": [name if index < 0 else [name, index]]}
        self._call("POST", f"/api/v2/dags/{dag}/clearTaskInstances", json=body | of_run)

    def answer(self, dag: str, run_id: str, task: str, choice: str) -> None:
        """Answer the question of a human-in-the-loop task."""
        path = f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances/{task}/-1/hitlDetails"
        self._call("PATCH", path, json={"chosen_options": [choice], "params_input": {}})

    def question(self, dag: str, run_id: str, task: str) -> Json:
        """Return the question of a human-in-the-loop task: `subject`, `body`, `options`."""
        return self._call("GET", f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances/{task}/-1/hitlDetails")

    def set_variable(self, key: str, value: str, description: str = "") -> None:
        """Create the Variable or replace its value."""
        body = {"key": key, "value": value, "description": description}
        self._create_or_patch("/api/v2/variables", key, body)

    def set_connection(self, connection_id: str, kind: str, extra: str, description: str = "") -> None:
        """Create the Connection or replace it. ``extra`` is JSON text."""
        body = {"connection_id": connection_id, "conn_type": kind, "extra": extra, "description": description}
        self._create_or_patch("/api/v2/connections", connection_id, body)

    def wait_for_run(self, dag: str, run_id: str, timeout_seconds: float) -> str:
        """Return the final state of a run, `success` or `failed`. Raises SetupError if it is not over in time."""

        def over() -> str:
            state = cast(str, self.run(dag, run_id)["state"])
            return state if state in ("success", "failed") else ""

        return wait_for(f"Airflow: run {run_id} of {dag}", timeout_seconds, over)

    def _task_instances(self, dag: str, run_id: str) -> list[Json]:
        return self._all(f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances", "task_instances")

    def _log_events(self, dag: str, run_id: str, task: str, attempt: int) -> list[Json]:
        name, index = _place(task)
        path = f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances/{name}/logs/{attempt}"
        params = {"full_content": True, "map_index": index}
        return cast(list[Json], self._call("GET", path, params=params)["content"])

    def _all(self, path: str, key: str) -> list[Json]:
        """Return every item of a collection, page by page."""
        found: list[Json] = []
        while True:
            reply = self._call("GET", path, params={"limit": _PAGE, "offset": len(found)})
            found += reply[key]
            if not reply[key] or len(found) >= reply["total_entries"]:
                return found

    def _create_or_patch(self, path: str, key: str, body: Json) -> None:
        if self._send("GET", f"{path}/{key}").status_code == httpx.codes.NOT_FOUND:
            self._call("POST", path, json=body)
        else:
            self._call("PATCH", f"{path}/{key}", json=body)

    def _call(self, method: str, path: str, **arguments: Any) -> Json:
        reply = self._send(method, path, **arguments)
        for _ in range(_LOCKED_TRIES):
            if reply.status_code != httpx.codes.INTERNAL_SERVER_ERROR:
                break
            time.sleep(_LOCKED_SECONDS)
            reply = self._send(method, path, **arguments)
            if reply.status_code == httpx.codes.CONFLICT:
                return {}  # an earlier request was accepted
        if reply.is_error:
            raise SetupError(f"Airflow at {self.url}: {method} {path}: HTTP {reply.status_code}: {_detail(reply)}")
        return cast(Json, reply.json())

    def _send(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        try:
            if "Authorization" not in self._http.headers:
                self._sign_in()
            reply = self._request(method, path, **arguments)
            if reply.status_code == httpx.codes.UNAUTHORIZED:
                self._sign_in()
                reply = self._request(method, path, **arguments)
        except httpx.TransportError as error:
            raise SetupError(
                f"Airflow at {self.url}: {method} {path}: {error}", hint="is it running? `strait demo status` tells"
            ) from error
        return reply

    def _request(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        """Send a request. On a busy machine a response may be late; a request that only reads is sent again."""
        for _ in range(_LATE_TRIES if method == "GET" else 0):
            with contextlib.suppress(httpx.ReadTimeout):
                return self._http.request(method, path, **arguments)
        return self._http.request(method, path, **arguments)

    def _sign_in(self) -> None:
        reply = self._http.post("/auth/token", json=self._login)
        if reply.is_error:  # the reply repeats the request's content, so it is not quoted
            raise SetupError(
                f"Airflow at {self.url}: signing in as {self._login['username']}: HTTP {reply.status_code}"
            )
        self._http.headers["Authorization"] = f"Bearer {reply.json()['access_token']}"


def _detail(reply: httpx.Response) -> str:
    body: Mapping[str, Any] = reply.json() if "json" in reply.headers.get("content-type", "") else {}
    return str(body.get("detail", reply.reason_phrase))


def _task(item: Json) -> str:
    index = int(item.get("map_index", -1))
    return str(item["task_id"]) if index < 0 else f"{item['task_id']}[{index}]"


def _place(task: str) -> tuple[str, int]:
    """Return the ID of a task, and its map index, -1 if it is not mapped."""
    name, _, index = task.removesuffix("]").partition("[")
    return name, int(index) if index else -1


def _log_line(event: Json) -> str:
    text = f"{event.get('timestamp', '')} {str(event.get('level', '')).upper()} {event.get('event', '')}".strip()
    return "\n".join([text, *_exceptions(event)])


def _exceptions(event: Json) -> list[str]:
    return [f"{error['exc_type']}: {error['exc_value']}" for error in event.get("error_detail") or []]
