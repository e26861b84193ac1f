"""The page's routes. Every one of them, the page's own files too, is for users who are logged in to Airflow; metrics, where
they are enabled, are for who has their token."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import FileResponse

from strait_airflow.page.paths import WholeNames
from strait_airflow.page.routes import details, groups, history, links, recovery, topics
from strait_airflow.page.routes.metrics import metrics_routes
from strait_airflow.page.security import signed_in

STATIC = Path(__file__).parent / "static"
MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
FILES = {path.name: path for path in STATIC.iterdir() if path.suffix in MEDIA}
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

# The documentation pages of FastAPI would be open to everybody.
app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, dependencies=[signed_in])
app.router.routes.extend(metrics_routes())  # they ask for a token, not for a login
for routes in (links, details, groups, history, recovery, topics):
    app.include_router(routes.api)
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
