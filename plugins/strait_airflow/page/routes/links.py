"""All links, one link, and its partitions."""

import time
from typing import Annotated, Literal

from fastapi import APIRouter, Query

from strait.waiting import unix_ms
from strait_airflow.page.observers import observers
from strait_airflow.page.routes.query import Limit, Offset, Search
from strait_airflow.page.schemas.common import answers
from strait_airflow.page.schemas.links import ClusterMap, Link, Links, Partitions, Topics
from strait_airflow.page.security import Changes, VisibleLink, VisibleLinks
from strait_airflow.page.views.answers import Data
from strait_airflow.page.views.details import link_details
from strait_airflow.page.views.links import LinksQuestion, Now, Question, link_row, links_page, partition_page
from strait_airflow.page.views.map import map_of
from strait_airflow.page.views.topics import topic_page
from strait_airflow.settings import dags_of, links_with_approval

api = APIRouter(prefix="/api/v1")
LinkSort = Literal["urgency", "link", "lag_records", "lag_seconds", "seconds_to_loss", "records_per_second"]
Sort = Literal["topic", "state", "reason", "lag_records", "lag_seconds", "position", "end", "seconds_to_loss"]


@api.get("/links", **answers(Links))
def links(
    visible: VisibleLinks,
    search: Search = "",
    state: Annotated[str, Query(max_length=100)] = "",
    sort: LinkSort = "urgency",
    descending: bool = False,
    offset: Offset = 0,
    limit: Limit = 20,
    source: Search = "",
    destination: Search = "",
    pool: Search = "",
) -> Data:
    """Return the links that the user may see, those that need an operator first, and a summary of all of them."""
    now = _now()
    rows = [link_row(name, observers.newest(name), now) for name in visible]
    return links_page(rows, LinksQuestion(search, state, sort, descending, offset, limit, source, destination, pool))


@api.get("/map", **answers(ClusterMap))
def clusters(visible: VisibleLinks) -> Data:
    """Return the clusters that the links connect which the user may see, with the rate and the most urgent state of each edge."""
    now = _now()
    return map_of([link_row(name, observers.newest(name), now) for name in visible])


@api.get("/links/{link}", **answers(Link, 404))
def link(name: VisibleLink, changes: Changes) -> Data:
    """Return a link, the DAG or Variable that makes each change, and whether the user may make it."""
    found = link_details(name, observers.newest(name), _now())
    return found | changes | {"own_dags": dags_of(name, links_with_approval())}


@api.get("/links/{link}/by_topic", **answers(Topics, 404))
def by_topic(name: VisibleLink, search: Search = "", offset: Offset = 0, limit: Limit = 20) -> Data:
    """Return the link's source topics, those that need an operator first."""
    return topic_page(observers.newest(name), search=search, offset=offset, limit=limit)


@api.get("/links/{link}/partitions", **answers(Partitions, 404))
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
    """Return the link's partitions."""
    return partition_page(observers.newest(name), Question(search, reason, state, sort, descending, offset, limit))


def _now() -> Now:
    return Now(time.monotonic(), unix_ms())
