"""DAGs that act on any link: the permissions of the link's own DAG hold."""

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient

from strait_airflow import settings
from strait_airflow.bodies import MOST_BYTES
from strait_airflow.page import security
from strait_airflow.shared_dags import SHARED, LinkRights

LINKS = ("orders", "payments")
USER_OF = security.user_of


@pytest.fixture
def seen() -> list[Any]:
    """The bodies of requests that Airflow has seen."""
    return []


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, seen: list[Any]) -> Iterator[TestClient]:
    """An API behind the middleware, used by somebody who may trigger every shared DAG, and of the links' own DAGs that of
    `orders` alone."""
    allowed = {*SHARED, "strait_orders"}

    def may(*, method: str, details: Any, **_: Any) -> bool:
        return method == "GET" or details.id in allowed

    async def user_of(*_: Any) -> str:
        return "somebody"

    monkeypatch.setattr(settings, "link_names", lambda: LINKS)
    monkeypatch.setattr(security, "get_auth_manager", lambda: SimpleNamespace(is_authorized_dag=may))
    monkeypatch.setattr(security, "user_of", user_of)
    app = FastAPI()

    @app.api_route("/{path:path}", methods=["GET", "POST", "PATCH"])
    async def airflow(path: str, request: Request) -> dict[str, str]:
        seen.append(await request.body())
        return {"path": path}

    app.add_middleware(LinkRights)
    with TestClient(app) as found:
        yield found


def trigger(client: TestClient, dag: str, conf: Any) -> int:
    return client.post(f"/api/v2/dags/{dag}/dagRuns", json={"logical_date": None, "conf": conf}).status_code


@pytest.mark.parametrize("dag", sorted(SHARED - {"strait-rehearsal"}))
def test_a_run_for_a_link_needs_the_permission_on_the_dag_of_the_link(
    client: TestClient, seen: list[Any], dag: str
) -> None:
    assert trigger(client, dag, {"link": "payments"}) == 403
    assert trigger(client, dag, {"link": "payments", "x": "y" * 5_000}) == 403
    assert not seen, "Airflow has not seen it"
    assert trigger(client, dag, {"link": "orders"}) == 200
    assert json.loads(seen[0]) == {"logical_date": None, "conf": {"link": "orders"}}, "the body is as it was sent"


def test_a_request_that_is_too_large_to_be_one_is_answered_so(client: TestClient, seen: list[Any]) -> None:
    assert trigger(client, "strait-pause", {"link": "orders", "reason": "x" * MOST_BYTES}) == 413
    assert not seen


def test_a_run_without_a_link_is_one_for_the_first(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trigger(client, "strait-pause", {}) == trigger(client, "strait-pause", None) == 200
    monkeypatch.setattr(settings, "link_names", lambda: ("payments", "orders"))
    assert trigger(client, "strait-pause", {}) == trigger(client, "strait-pause", None) == 403


@pytest.mark.parametrize(
    ("dag", "conf"),
    [
        ("strait-audit", {}),
        ("strait-audit", None),
        ("strait-audit", {"link": ""}),
        ("strait-rehearsal", {"link": "orders"}),
    ],
)
def test_a_run_for_every_link_needs_the_permission_for_each(
    client: TestClient, seen: list[Any], monkeypatch: pytest.MonkeyPatch, dag: str, conf: Any
) -> None:
    assert trigger(client, dag, conf) == 403 and not seen
    monkeypatch.setattr(settings, "link_names", lambda: ("orders",))
    assert trigger(client, dag, conf) == 200


def test_earlier_runs_may_be_of_any_link(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clearing a run runs it again."""
    every, body = "/api/v2/dags/~/clearDagRuns", {"dag_runs": [{"dag_id": "strait-failover", "dag_run_id": "r"}]}

    def statuses() -> list[int]:
        dag = "/api/v2/dags/strait-failover"
        return [
            client.post(f"{dag}/dagRuns/r/clear", json={}).status_code,
            client.post(f"{dag}/clearTaskInstances", json={"dag_run_id": "r"}).status_code,
            client.patch(f"{dag}/dagRuns/r", json={"state": "queued"}).status_code,
            client.post(every, json=body).status_code,
            client.patch(f"{dag}/dagRuns/r/taskInstances/t%0A%0A", json={"new_state": "failed"}).status_code,
            client.patch(f"{dag}/dagRuns%0A", json={"state": "queued"}).status_code,
        ]

    assert statuses() == [403] * 6
    monkeypatch.setattr(settings, "link_names", lambda: ("orders",))
    assert 403 not in statuses()


@pytest.mark.parametrize("path", ["dagRuns", "dagRuns/x/taskInstances", "dagRuns/x%0A/taskInstances/"])
def test_a_change_of_several_runs_is_one_of_the_dags_that_the_body_names(
    client: TestClient, seen: list[Any], path: str
) -> None:
    def change(dag: str) -> int:
        body = {
            "actions": [{"action": "update", "entities": [{"dag_id": dag, "dag_run_id": "r", "new_state": "failed"}]}]
        }
        return client.patch(f"/api/v2/dags/mine/{path}", json=body).status_code

    assert change("strait-failover") == 403 and not seen
    assert change("mine") != 403


def test_what_only_looks_like_a_search_is_none(client: TestClient) -> None:
    task = "/api/v2/dags/strait-failover/dagRuns/r/taskInstances/t"
    assert client.patch(f"{task}/xcomEntries/x/list", json={"value": 1}).status_code == 403
    assert client.patch("/api/v2/dags/strait-failover/dagRuns/list", json={"state": "queued"}).status_code == 403
    assert client.post("/api/v2/dags/strait-failover/dagRuns/~/taskInstances/list", json={}).status_code == 200


def test_everything_else_is_airflows(client: TestClient) -> None:
    assert trigger(client, "another", {"link": "payments"}) == 200
    assert trigger(client, "another", {"dag": "strait-pause"}) == 200
    assert client.get("/api/v2/dags/strait-pause/dagRuns").status_code == 200
    assert client.post("/api/v2/dags/~/dagRuns/list", json={"dag_ids": ["strait-pause"]}).status_code == 200
    assert client.post("/api/v2/dags/~/clearDagRuns", json={"dag_runs": [{"dag_id": "another"}]}).status_code == 200
    assert client.patch("/api/v2/dags/strait-pause", json={"is_paused": True}).status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"conf": {"link": "payments", "x": NaN}}',
        json.dumps({"conf": {"link": "payments"}}).encode("utf-16"),
        b'{"conf": {"link": "payments", "x": "\\ud800"}}',
    ],
)
def test_what_airflow_could_read_in_another_way_is_rejected(client: TestClient, seen: list[Any], body: bytes) -> None:
    sent = client.post("/api/v2/dags/strait-pause/dagRuns", content=body, headers={"Content-Type": "application/json"})
    assert sent.status_code in (400, 403) and not seen


def test_of_a_key_that_is_given_twice_the_last_one_counts_as_in_airflow(client: TestClient, seen: list[Any]) -> None:
    twice = b'{"conf": {"link": "orders", "link": "payments"}}'
    assert json.loads(twice)["conf"]["link"] == "payments"
    assert client.post("/api/v2/dags/strait-pause/dagRuns", content=twice).status_code == 403 and not seen


def test_a_request_without_a_login_is_rejected(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "user_of", USER_OF)
    assert trigger(client, "strait-pause", {"link": "orders"}) == 401


def test_the_page_offers_only_what_the_user_may_do_to_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    may = {*SHARED, "strait_orders"}
    manager = SimpleNamespace(
        is_authorized_dag=lambda *, details, **_: details.id in may, is_authorized_variable=lambda **_: False
    )
    monkeypatch.setattr(security, "get_auth_manager", lambda: manager)
    monkeypatch.setattr(security, "links_with_approval", lambda: ())
    assert security.changes("orders", "somebody")["may"]["pause"]
    assert not any(security.changes("payments", "somebody")["may"].values())


def test_airflows_own_server_has_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers before Airflow has looked at the request."""
    from airflow.api_fastapi.app import create_app

    monkeypatch.setattr(settings, "link_names", lambda: LINKS)
    with TestClient(create_app(apps="core")) as airflow:
        sent = airflow.post("/api/v2/dags/strait-pause/dagRuns", content=b"{")
        assert sent.status_code == 400 and "is not JSON" in sent.json()["detail"]
        assert airflow.post("/api/v2/dags/another/dagRuns", content=b"{").status_code in (401, 403)
