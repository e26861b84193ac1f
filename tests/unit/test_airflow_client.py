"""Of long lists Airflow returns one page a request."""

from collections.abc import Callable

import httpx
import pytest

from strait.embedded.airflow_client import AirflowClient, Json


def served(request: httpx.Request) -> httpx.Response:
    """A server that holds 250 of everything, and returns 50 at most."""
    if request.url.path == "/auth/token":
        return httpx.Response(201, json={"access_token": "t"})
    first, limit = int(request.url.params.get("offset", 0)), min(50, int(request.url.params.get("limit", 20)))
    items = [{"dag_id": f"d{number}", "task_id": f"t{number}", "state": "success"} for number in range(250)]
    key = {"dags": "dags", "importErrors": "import_errors", "taskInstances": "task_instances"}[
        request.url.path.rpartition("/")[2]
    ]
    return httpx.Response(200, json={key: items[first : first + limit], "total_entries": len(items)})


@pytest.mark.parametrize(
    "ask", [AirflowClient.dags, AirflowClient.import_errors, lambda client: client.task_states("d", "r")]
)
def test_every_page_is_read(ask: Callable[[AirflowClient], list[Json]]) -> None:
    client = AirflowClient("http://airflow", "u", "p")
    client._http = httpx.Client(base_url=client.url, transport=httpx.MockTransport(served))
    assert len(ask(client)) == 250
