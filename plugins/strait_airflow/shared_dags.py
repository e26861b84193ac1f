"""Middleware of Airflow's API server: to trigger a DAG that acts on any link, a user also needs the permission to
trigger the DAG of that link.

Airflow checks the permission on the shared DAG only, and does not know that its Param `link` names another one.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastapi import Request

from strait_airflow.bodies import again, body_or_refusal
from strait_airflow.settings import AUDIT_DAG, FAILOVER_DAG, PAUSE_DAG, QUARANTINE_DAG, REHEARSAL_DAG

SHARED = frozenset({PAUSE_DAG, QUARANTINE_DAG, FAILOVER_DAG, AUDIT_DAG, REHEARSAL_DAG})
_EVERY = "~"  # Airflow's wildcard: the body names the DAGs
_LISTING = re.compile(r"dagRuns(/[^/]+/taskInstances)?/list")
"""Searches, which are POST requests. The key of an XCom may end in the same way."""
_RUNS = re.compile(r"/dags/(?P<dag>[^/]+)/(?P<rest>(?:dagRuns|clear|taskInstances).*)", re.DOTALL)
"""Requests about runs and their tasks. Names from the client may contain line ends."""
_MANY = re.compile(r"(dagRuns(/[^/]+/taskInstances)?|clear\w+)[/\n]*")
"""Changes of several runs or tasks. Airflow applies them to the DAGs that the body names, not to the one in the path."""


class LinkRights:
    """ASGI middleware. A rejected request gets 403, and Airflow does not see it."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        found = _RUNS.search(scope["path"]) if scope["type"] == "http" and scope["method"] != "GET" else None
        if found is None or not _concerns_shared(scope["method"], found["dag"], found["rest"]):
            await self._app(scope, receive, send)
            return
        from fastapi import HTTPException, Request
        from fastapi.responses import JSONResponse

        body = await body_or_refusal(scope, receive, send)
        if body is None:
            return
        triggers = _triggers(scope["method"], found["rest"])
        try:
            await _check(Request(scope), found["dag"], body, triggers=triggers)
        except HTTPException as error:
            await JSONResponse({"detail": error.detail}, error.status_code)(scope, receive, send)
            return
        await self._app(scope, again(body, receive), send)


def _concerns_shared(method: str, dag: str, rest: str) -> bool:
    """Return whether a request may act on a shared DAG. The body names it, if the path does not."""
    if method == "POST" and _LISTING.fullmatch(rest):
        return False
    return dag in {*SHARED, _EVERY} or (_MANY.fullmatch(rest) is not None and not _triggers(method, rest))


def _triggers(method: str, rest: str) -> bool:
    return method == "POST" and rest.strip("/\n") == "dagRuns"


async def _check(request: "Request", dag: str, body: bytes, *, triggers: bool) -> None:
    """Raise HTTPException unless the user may trigger the DAG of each link that the request acts upon."""
    from fastapi.concurrency import run_in_threadpool

    from strait_airflow.page.security import missing_rights, user_of
    from strait_airflow.settings import link_names

    links = set(_links(dag, body, link_names(), triggers=triggers))
    if links:
        await run_in_threadpool(missing_rights, await user_of(request), sorted(links))


def _links(dag: str, body: bytes, known: tuple[str, ...], *, triggers: bool) -> Iterator[str]:
    """Yield the links that the request acts upon: the one in the configuration of a new run; all of them for a change of
    earlier runs, a rehearsal, and an audit that names none. None if it acts upon no shared DAG, or Airflow rejects it.

    Raises:
        HTTPException: the body is not strict JSON in UTF-8. Airflow reads more than that, perhaps differently.
    """
    from fastapi import HTTPException

    from strait.json_text import value_of

    try:
        told = value_of(body.decode()) if body else {}
    except ValueError as error:
        raise HTTPException(400, f"the request is not JSON: {error}") from error
    if dag not in SHARED and not SHARED & set(_texts(told)):
        return
    conf = told.get("conf") if isinstance(told, Mapping) else None
    first = "" if dag == AUDIT_DAG else next(iter(known), None)
    link = conf.get("link") if isinstance(conf, Mapping) and "link" in conf else first
    if not triggers or dag == REHEARSAL_DAG or (dag == AUDIT_DAG and link == ""):
        yield from known
    elif isinstance(link, str):  # anything else is rejected by the Param
        yield link


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            left += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            left += one
