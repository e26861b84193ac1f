"""Who asks, and what they may see. The only module that imports Airflow's own security helpers, which are no promised
interface.
"""

from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
from airflow.api_fastapi.core_api.security import GetUserDep, get_user
from airflow.configuration import conf
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException

from strait_airflow.settings import dag_id, link_names

signed_in = Depends(get_user)
"""Refuses whoever has not logged in to Airflow, with 401."""


def visible_links(user: GetUserDep) -> tuple[str, ...]:
    """The links whose monitor DAG this user may read."""
    may = get_auth_manager().is_authorized_dag
    return tuple(name for name in link_names() if may(method="GET", details=_details(dag_id(name)), user=user))


def _details(dag: str) -> DagDetails:
    """Its team is asked for where there are teams: that is a look into the database."""
    team = DagModel.get_team_name(dag) if conf.getboolean("core", "multi_team") else None
    return DagDetails(id=dag, team_name=team)


VisibleLinks = Annotated[tuple[str, ...], Depends(visible_links)]


def visible_link(link: str, visible: VisibleLinks) -> str:
    """The link of the path. One that the user may not see is one that does not exist."""
    if link not in visible:
        raise HTTPException(404, f"link {link}: there is none that you may see; ask for read access to its DAG")
    return link


VisibleLink = Annotated[str, Depends(visible_link)]
