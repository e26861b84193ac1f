"""The exporter's metrics for Prometheus, which authenticates with a token, since it cannot log in to Airflow."""

import hmac
import os
from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from strait.exporter import TOKEN_VARIABLE
from strait.exporter.observation import Observation
from strait.exporter.rendering import registry_of
from strait_airflow.page.observers import observers
from strait_airflow.settings import link_names


def metrics_routes() -> list[Route]:
    """Return the metrics route if the API server's environment has a token, else no route."""
    token = os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        return []
    wanted, registry = f"Bearer {token}".encode(), registry_of(_observed)

    def scrape(request: Request) -> Response:
        given = request.headers.get("Authorization", "").encode("latin-1", "replace")
        if not hmac.compare_digest(given, wanted):
            return PlainTextResponse("a bearer token is needed\n", 401, {"WWW-Authenticate": "Bearer"})
        return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return [Route("/metrics", scrape)]


def _observed() -> Iterator[Observation]:
    """Yield the latest observation of every link. A scrape at least every two minutes keeps links observed."""
    for link in link_names():
        if (seen := observers.newest(link)) is not None:
            yield seen
