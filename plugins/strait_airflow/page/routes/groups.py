"""Consumer groups of a link."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query

from strait.waiting import unix_ms
from strait_airflow.page.observers import groups_observers, observers
from strait_airflow.page.routes.query import Limit, Offset, Search
from strait_airflow.page.schemas.common import Looked, answers
from strait_airflow.page.schemas.details import GroupDetails, Groups
from strait_airflow.page.security import VisibleLink
from strait_airflow.page.views.answers import Data
from strait_airflow.page.views.groups import Sync, group_details, groups_page

api = APIRouter(prefix="/api/v1")


@api.get("/links/{link}/groups", **answers(Groups, 404))
def groups(
    name: VisibleLink,
    search: Search = "",
    state: Annotated[str, Query(max_length=100)] = "",
    offset: Offset = 0,
    limit: Limit = 20,
) -> Data:
    """Return consumer groups that have offsets in the link's topics, whether or not the link synchronizes them."""
    return groups_page(
        groups_observers.newest(name), _sync(name), search=search, state=state, offset=offset, limit=limit
    )


@api.get("/links/{link}/group", **answers(GroupDetails | Looked, 404))
def group(name: VisibleLink, group: str, offset: Offset = 0, limit: Limit = 20) -> Data:
    """Return one consumer group. Its name may contain any character, so it is not part of the path."""
    found = group_details(groups_observers.newest(name), _sync(name), group, offset=offset, limit=limit)
    if found is None:
        raise HTTPException(404, f"link {name}: no consumer group {group} has offsets in its topics")
    return found


def _sync(link: str) -> Sync:
    seen, now_ms = observers.newest(link), unix_ms()
    if seen is None or not seen.plans:
        return Sync(None, None, now_ms)
    return Sync(any(plan.consumer_groups for plan in seen.plans.values()), seen.group_sync, now_ms)
