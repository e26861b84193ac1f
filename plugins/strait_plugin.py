"""Registers with Airflow: Strait's page, its address and its place in the navigation, the widget on the home page, and
who writes the notes of runs.

Every process of Airflow loads this file, tasks too, so the page itself is imported by its first request.
"""

from typing import Any, ClassVar
from urllib.parse import urlsplit

from airflow.plugins_manager import AirflowPlugin

from strait_airflow.page_address import ROUTE, base_url
from strait_airflow.run_notes import RunNotes

PREFIX = "/strait"
_PAGE = f"{urlsplit(base_url()).path}{PREFIX}"
"""On this host."""


class LazyPage:
    """The page's ASGI application."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from strait_airflow.page.app import app

        await app(scope, receive, send)


class StraitPlugin(AirflowPlugin):
    """Found by Airflow."""

    name = "strait"
    listeners: ClassVar = [RunNotes()]
    fastapi_apps: ClassVar = [{"app": LazyPage(), "url_prefix": PREFIX, "name": "Strait"}]
    external_views: ClassVar = [
        {
            "name": "Strait",
            "href": f"{_PAGE}/",
            "destination": "nav",
            "url_route": ROUTE,
        }
    ]
    react_apps: ClassVar = [
        {
            "name": "Strait links",
            "bundle_url": f"{_PAGE}/home.js",
            "destination": "dashboard",
            "url_route": "strait-links",  # no page of its own, but Airflow shows nothing without one
        }
    ]
