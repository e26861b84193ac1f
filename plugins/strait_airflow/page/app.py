"""The page's routes. All of them, including the page's own files, require a login to Airflow; the metrics, if enabled,
require their token instead."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import FileResponse

from strait_airflow.bodies import BoundedBodies
from strait_airflow.page.bundle import bundled
from strait_airflow.page.openapi import PREFIX, document
from strait_airflow.page.paths import WholeNames
from strait_airflow.page.routes import airflow, details, groups, history, links, recovery, topics
from strait_airflow.page.routes.metrics import metrics_routes
from strait_airflow.page.security import signed_in

STATIC = Path(__file__).parent / "static"
MEDIA = {".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
FILES = {path.name: path for path in STATIC.iterdir() if path.suffix in MEDIA}
SCRIPT = "page.js"
BUNDLE = bundled(
    SCRIPT, {name: path.read_text(encoding="utf-8") for name, path in FILES.items() if path.suffix == ".js"}
)
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

# FastAPI's documentation pages would be accessible without a login.
app = FastAPI(
    docs_url=None,
    redoc_url=None,
    openapi_url=None,
    dependencies=[signed_in],
    generate_unique_id_function=lambda route: route.name,
)
app.router.routes.extend(metrics_routes())  # they require a token, not a login
for routes in (airflow, links, details, groups, history, recovery, topics):
    app.include_router(routes.api)
app.add_middleware(WholeNames)
app.add_middleware(BoundedBodies)


@app.get(f"{PREFIX}/openapi.json", include_in_schema=False)
def openapi(request: Request) -> dict[str, Any]:
    """Return the OpenAPI document of the HTTP API."""
    return document(app, request.scope.get("root_path", ""))


@app.get("/")
@app.get("/{name}")
def file(name: str = "index.html") -> Response:
    """Return one of the page's own files; its script together with all modules that it imports."""
    if name == SCRIPT:
        return Response(BUNDLE, media_type=MEDIA[".js"])
    if name not in FILES:
        raise HTTPException(404, "the page has no such file")
    return FileResponse(FILES[name], media_type=MEDIA[FILES[name].suffix])


@app.middleware("http")
async def with_headers(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Any:
    response = await call(request)
    response.headers.update(HEADERS)
    return response
