"""The page's routes. Every one of them, the page's own files too, is for users who are logged in to Airflow."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, HTTPException, Query, Request, Response
from fastapi.responses import FileResponse

from strait_airflow.page.details_views import link_details
from strait_airflow.page.observers import observers
from strait_airflow.page.paths import WholeNames
from strait_airflow.page.routes_details import details_api
from strait_airflow.page.routes_groups import groups_api
from strait_airflow.page.routes_history import history_api
from strait_airflow.page.routes_recovery import recovery_api
from strait_airflow.page.routes_topics import topics_api
from strait_airflow.page.security import Changes, VisibleLink, VisibleLinks, signed_in
from strait_airflow.page.views import (
    MOST_ROWS,
    Data,
    Question,
    by_urgency,
    link_row,
    partition_page,
)
from strait_airflow.settings import dags_of, links_with_approval

STATIC = Path(__file__).parent / "static"
MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
FILES = {path.name: path for path in STATIC.iterdir() if path.suffix in MEDIA}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

api = APIRouter(prefix="/api/v1")
Sort = Literal["topic", "state", "reason", "lag_records", "lag_seconds", "position", "end"]


@api.get("/links")
def links(visible: VisibleLinks) -> Data:
    """Every link that the user may see, what needs a person first."""
    return {"links": by_urgency([link_row(name, observers.newest(name)) for name in visible])}


@api.get("/links/{link}")
def link(name: VisibleLink, changes: Changes) -> Data:
    """With what may be changed, and by which DAG or Variable of Airflow."""
    return link_details(name, observers.newest(name)) | changes | {"own_dags": dags_of(name, links_with_approval())}


@api.get("/links/{link}/partitions")
def partitions(
    name: VisibleLink,
    search: Annotated[str, Query(max_length=249)] = "",
    reason: Annotated[str, Query(max_length=100)] = "",
    state: Annotated[str, Query(max_length=100)] = "",
    sort: Sort = "lag_records",
    descending: bool = True,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 20,
) -> Data:
    return partition_page(observers.newest(name), Question(search, reason, state, sort, descending, offset, limit))


# The documentation pages of FastAPI would be open to everybody.
app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, dependencies=[signed_in])
app.include_router(api)
app.include_router(groups_api)
app.include_router(recovery_api)
app.include_router(details_api)
app.include_router(history_api)
app.include_router(topics_api)
app.add_middleware(WholeNames)


@app.get("/")
@app.get("/{name}")
def file(name: str = "index.html") -> FileResponse:
    """One of the page's own files."""
    if name not in FILES:
        raise HTTPException(404, "the page has no such file")
    return FileResponse(FILES[name], media_type=MEDIA[FILES[name].suffix])


@app.middleware("http")
async def with_headers(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Any:
    response = await call(request)
    response.headers.update(HEADERS)
    return response
