"""All links, one link, and its partitions."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from strait_airflow.page.observers import observers
from strait_airflow.page.routes.query import Limit, Offset, Search
from strait_airflow.page.security import Changes, VisibleLink, VisibleLinks
from strait_airflow.page.views.answers import Data
from strait_airflow.page.views.details import link_details
from strait_airflow.page.views.links import Question, by_urgency, link_row, partition_page
from strait_airflow.settings import dags_of, links_with_approval

api = APIRouter(prefix="/api/v1")
Sort = Literal["topic", "state", "reason", "lag_records", "lag_seconds", "position", "end"]


@api.get("/links")
def links(visible: VisibleLinks) -> Data:
    """Return every link that the user may see, those that need an operator first."""
    return {"links": by_urgency([link_row(name, observers.newest(name)) for name in visible])}


@api.get("/links/{link}")
def link(name: VisibleLink, changes: Changes) -> Data:
    """Return a link, the DAG or Variable that makes each change, and whether the user may make it."""
    return link_details(name, observers.newest(name)) | changes | {"own_dags": dags_of(name, links_with_approval())}


@api.get("/links/{link}/partitions")
def partitions(
    name: VisibleLink,
    search: Search = "",
    reason: Annotated[str, Query(max_length=100)] = "",
    state: Annotated[str, Query(max_length=100)] = "",
    sort: Sort = "lag_records",
    descending: bool = True,
    offset: Offset = 0,
    limit: Limit = 20,
) -> Data:
    return partition_page(observers.newest(name), Question(search, reason, state, sort, descending, offset, limit))
