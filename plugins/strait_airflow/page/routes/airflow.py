"""Airflow's own components, without which no run starts."""

from dataclasses import asdict
from datetime import UTC, datetime

from airflow.api.common.airflow_health import get_airflow_health
from fastapi import APIRouter

from strait.embedded.airflow_health import components_of
from strait_airflow.page.schemas.common import answers
from strait_airflow.page.schemas.details import Components
from strait_airflow.page.views.answers import Data

api = APIRouter(prefix="/api/v1")


@api.get("/airflow", **answers(Components))
def airflow() -> Data:
    """Return Airflow's components, each with the age of its last heartbeat and its problem, if it has one."""
    found = components_of(get_airflow_health(), datetime.now(UTC))
    return {"components": [asdict(one) | {"problem": one.problem} for one in found]}
