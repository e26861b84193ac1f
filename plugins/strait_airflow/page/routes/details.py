"""One partition of a link, its applications and its quarantine."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query

from strait_airflow.page.observers import (
    applications_observers,
    observers,
    quarantine_observers,
    runs_observers,
)
from strait_airflow.page.routes.query import Limit, Offset, Search
from strait_airflow.page.security import ReadsLogs, VisibleLink
from strait_airflow.page.views.answers import Data
from strait_airflow.page.views.details import applications_view, partition_details, partition_runs, quarantine_page

api = APIRouter(prefix="/api/v1/links/{link}")
Partition = Annotated[int, Query(ge=0)]


@api.get("/partition")
def partition(name: VisibleLink, topic: str, partition: Partition) -> Data:
    found = partition_details(observers.newest(name), topic, partition)
    if found is None:
        raise HTTPException(404, f"link {name}: its plan has no partition {topic}-{partition}")
    return found


@api.get("/runs")
def runs(name: VisibleLink, topic: str, partition: Partition) -> Data:
    """Return the offset segments of one partition."""
    return partition_runs(runs_observers.newest(name), topic, partition)


@api.get("/applications")
def applications(name: VisibleLink, logs: ReadsLogs) -> Data:
    """Return the link's applications, as far as this host can see them."""
    return applications_view(applications_observers.newest(name), observers.newest(name), logs=logs)


@api.get("/quarantine")
def quarantine(name: VisibleLink, search: Search = "", offset: Offset = 0, limit: Limit = 20) -> Data:
    return quarantine_page(quarantine_observers.newest(name), search=search, offset=offset, limit=limit)
