"""Identifies the user and checks their permissions. The only module that imports Airflow's own security helpers, which
are not a public interface.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails, VariableDetails
from airflow.api_fastapi.core_api.security import GetUserDep, get_user
from airflow.configuration import conf
from airflow.models.dag import DagModel
from airflow.models.variable import Variable
from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPBearer

from strait_airflow.page.paths import decoded
from strait_airflow.settings import (
    FAILOVER_DAG,
    PAUSE_DAG,
    QUARANTINE_DAG,
    dag_id,
    link_names,
    links_with_approval,
    variable_name,
)

signed_in = Depends(get_user)
"""Rejects requests without a login to Airflow, with 401."""


async def user_of(request: Request) -> Any:
    """Return the user of a request of which FastAPI resolves no dependencies. Raises HTTPException."""
    return await get_user(request, None, await HTTPBearer(auto_error=False)(request))


def visible_links(user: GetUserDep) -> tuple[str, ...]:
    """Return the links whose monitor DAG this user may read."""
    may = get_auth_manager().is_authorized_dag
    return tuple(name for name in link_names() if may(method="GET", details=_details(dag_id(name)), user=user))


def _details(dag: str) -> DagDetails:
    """Return the DAG's details. Its team is queried only if teams are enabled, since that requires a database query."""
    return DagDetails(id=dag, team_name=DagModel.get_team_name(dag) if _has_teams() else None)


def _has_teams() -> bool:
    return conf.getboolean("core", "multi_team")


VisibleLinks = Annotated[tuple[str, ...], Depends(visible_links)]


def visible_link(link: str, visible: VisibleLinks) -> str:
    """Return the link in the path; 404 if the user may not see it, as if it did not exist."""
    name = decoded(link)
    if name not in visible:
        raise HTTPException(404, f"link {name}: there is none that you may see; ask for read access to its DAG")
    return name


VisibleLink = Annotated[str, Depends(visible_link)]


def changes(link: VisibleLink, user: GetUserDep) -> dict[str, Any]:
    """Return which DAGs and Variable change the link, and whether this user may use them; Airflow enforces that too.

    Returns: `dags`, change -> the DAG that makes it; `variable`, which holds the link's topics; `may`, change -> bool.
    """
    dags = {
        "pause": PAUSE_DAG,
        "restart": dag_id(link),
        "quarantine": QUARANTINE_DAG,
        "failover": FAILOVER_DAG,
    }
    may_run_its_own = _may_run(user, dag_id(link))
    may = {change: may_run_its_own and _may_run(user, dag) for change, dag in dags.items()}
    if link in links_with_approval():
        dags["approve"] = dag_id(link, "approval")
        may["approve"] = _may_answer(user, dags["approve"])
    return {"dags": dags, "variable": variable_name(link), "may": may | {"edit": _may_edit(user, variable_name(link))}}


Changes = Annotated[dict[str, Any], Depends(changes)]


def editable_link(link: VisibleLink, user: GetUserDep) -> str:
    """Return the link if the user may change its topics, else 403: a preview reveals the source's topics."""
    if not _may_edit(user, variable_name(link)):
        raise HTTPException(403, f"link {link}: you may not change Variable {variable_name(link)}")
    return link


EditableLink = Annotated[str, Depends(editable_link)]


class Reader(NamedTuple):
    """A link whose records a user may read, and the user's name."""

    link: str
    user: str


def reader(link: VisibleLink, user: GetUserDep, can: Changes) -> Reader:
    """Return the link if the user may replay its quarantined records, else 403."""
    if not can["may"]["quarantine"]:
        raise HTTPException(
            403, f"link {link}: you may not see its records: you may not trigger DAG {QUARANTINE_DAG} for it"
        )
    return Reader(link, user.get_name())


QuarantineReader = Annotated[Reader, Depends(reader)]


def reads_logs(link: VisibleLink, user: GetUserDep) -> bool:
    """Return whether the user may read the logs of the link's tasks, which also show its applications' last lines."""
    may = get_auth_manager().is_authorized_dag
    details = _details(dag_id(link))
    return bool(may(method="GET", access_entity=DagAccessEntity.TASK_LOGS, details=details, user=user))


ReadsLogs = Annotated[bool, Depends(reads_logs)]


def missing_rights(user: GetUserDep, links: Sequence[str]) -> None:
    """Raise HTTPException, 403, for the first link whose DAG this user may not trigger."""
    for link in links:
        if not _may_run(user, dag_id(link)):
            raise HTTPException(
                403, f"link {link}: you may not trigger DAG {dag_id(link)}, so no DAG may change the link for you"
            )


def _may_run(user: GetUserDep, dag: str) -> bool:
    may = get_auth_manager().is_authorized_dag
    return bool(may(method="POST", access_entity=DagAccessEntity.RUN, details=_details(dag), user=user))


def _may_answer(user: GetUserDep, dag: str) -> bool:
    may = get_auth_manager().is_authorized_dag
    return bool(may(method="PUT", access_entity=DagAccessEntity.HITL_DETAIL, details=_details(dag), user=user))


def _may_edit(user: GetUserDep, variable: str) -> bool:
    """Return whether the user may read, change and create the Variable, which the first change of topics creates."""
    details = VariableDetails(key=variable, team_name=Variable.get_team_name(variable) if _has_teams() else None)
    may = get_auth_manager().is_authorized_variable
    return all(may(method=method, details=details, user=user) for method in ("GET", "PUT", "POST"))
