"""Failovers and rehearsals of a link."""

from fastapi import APIRouter, HTTPException

from strait_airflow.page.observers import failovers_observers, observers
from strait_airflow.page.routes.query import Limit, Offset
from strait_airflow.page.schemas.common import Looked, answers
from strait_airflow.page.schemas.recovery import FailoverReport, Recovery
from strait_airflow.page.security import VisibleLink
from strait_airflow.page.views.answers import Data
from strait_airflow.page.views.recovery import recovery_page, report

api = APIRouter(prefix="/api/v1/links/{link}")


@api.get("/recovery", **answers(Recovery, 404))
def recovery(name: VisibleLink, offset: Offset = 0, limit: Limit = 20) -> Data:
    """Return failovers and rehearsals, newest first, and how ready the link is for a failover."""
    found = failovers_observers.newest(name)
    return recovery_page(found, offset=offset, limit=limit, link=observers.newest(name))


@api.get("/failover", **answers(FailoverReport | Looked, 404))
def failover(name: VisibleLink, id: str) -> Data:
    """Return the report of one failover or rehearsal."""
    found = report(failovers_observers.newest(name), id)
    if found is None:
        raise HTTPException(404, f"link {name}: no failover {id} is known")
    return found
