"""Consumer groups of a link."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query

from strait.state.group_sync_records import GroupSyncReport
from strait_airflow.page.observers import groups_observers, observers
from strait_airflow.page.routes.query import Limit, Offset, Search
from strait_airflow.page.security import VisibleLink
from strait_airflow.page.views.answers import Data
from strait_airflow.page.views.groups import group_details, groups_page

api = APIRouter(prefix="/api/v1")


@api.get("/links/{link}/groups")
def groups(
    name: VisibleLink,
    search: Search = "",
    state: Annotated[str, Query(max_length=100)] = "",
    offset: Offset = 0,
    limit: Limit = 20,
) -> Data:
    return groups_page(
        groups_observers.newest(name), _report(name), search=search, state=state, offset=offset, limit=limit
    )


@api.get("/links/{link}/group")
def group(name: VisibleLink, group: str, offset: Offset = 0, limit: Limit = 20) -> Data:
    """Return one consumer group. Its name may contain any character, so it is not part of the path."""
    found = group_details(groups_observers.newest(name), _report(name), group, offset=offset, limit=limit)
    if found is None:
        raise HTTPException(404, f"link {name}: no consumer group {group} has offsets in its topics")
    return found


def _report(link: str) -> GroupSyncReport | None:
    """Return the last report of the continuous synchronization by the link's application; None: there is none."""
    seen = observers.newest(link)
    return None if seen is None else seen.group_sync
