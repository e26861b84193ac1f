"""Registers with Airflow: Strait's page, its address and its navigation entry, the widget on the home page, and the
listener that writes the notes of runs; and the check of permissions on links.

Every Airflow process loads this file, including tasks, so the page itself is imported on its first request.
"""

from typing import Any, ClassVar
from urllib.parse import urlsplit

from airflow.plugins_manager import AirflowPlugin

from strait_airflow.foreign_text import log_printably
from strait_airflow.page_address import ROUTE, base_url
from strait_airflow.run_notes import RunNotes
from strait_airflow.shared_dags import LinkRights

log_printably()

PREFIX = "/strait"
_PAGE = f"{urlsplit(base_url()).path}{PREFIX}"
"""Path of the page on this host."""


class LazyPage:
    """The page's ASGI application, imported on the first request."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from strait_airflow.page.app import app

        await app(scope, receive, send)


class StraitPlugin(AirflowPlugin):
    """Airflow discovers this class."""

    name = "strait"
    listeners: ClassVar = [RunNotes()]
    fastapi_apps: ClassVar = [{"app": LazyPage(), "url_prefix": PREFIX, "name": "Strait"}]
    fastapi_root_middlewares: ClassVar = [{"middleware": LinkRights, "name": "Strait: rights on links"}]
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
            "url_route": "strait-links",  # has no separate page, but Airflow shows nothing without a route
        }
    ]
