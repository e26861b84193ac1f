"""The OpenAPI document of the HTTP API: all routes below `PREFIX`."""

import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

PREFIX = "/api/v1"
VERSION = "1.2"
"""Increased with every field or route that is added. A change that removes or alters one gets another `PREFIX`."""

_TEXT = """\
Read-only: changes go through Airflow's own API. Requests need a login to Airflow, as for Airflow's API: a bearer token, or
the cookie of its UI. Users see the links whose DAG `strait_<link>` they may read.

Links are read in the background from the first request on, until two minutes after the last one: `looking` is true until
the first read is over. Times that end with `_ms` are in ms since 1970."""


def document(app: FastAPI, root: str = "") -> dict[str, Any]:
    """Return the document. ``root``: the path at which the API server serves the page."""
    found = get_openapi(
        title="Strait",
        version=VERSION,
        summary="States of links, their topics, partitions and consumer groups.",
        description=_TEXT,
        routes=[one for one in app.routes if isinstance(one, APIRoute) and one.path.startswith(PREFIX)],
        servers=[{"url": root or "/strait"}],
    )
    for methods in found["paths"].values():
        for operation in methods.values():
            del operation["summary"]  # the name of a function
    return dict(found)


def text_of(app: FastAPI) -> str:
    """Return the document as it is published."""
    return json.dumps(document(app), indent=1, ensure_ascii=False) + "\n"
