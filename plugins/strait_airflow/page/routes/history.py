"""Metrics of links over the last 24 h."""

from typing import Annotated

from fastapi import APIRouter, Query

from strait.planning.history.sample import Sample
from strait_airflow.page.observers import history_observers
from strait_airflow.page.schemas.common import answers
from strait_airflow.page.schemas.details import History, Rates
from strait_airflow.page.security import VisibleLink, VisibleLinks
from strait_airflow.page.views.answers import Data
from strait_airflow.page.watches.history import HOUR_MS, HistorySeen

SPARKLINE_HOURS = 6

api = APIRouter(prefix="/api/v1")
Hours = Annotated[int, Query(ge=1, le=24)]


@api.get("/history", **answers(Rates))
def rates(visible: VisibleLinks) -> Data:
    """Return the records per second of each link over the last 6 hours."""
    return {"links": {name: _rates(history_observers.newest(name)) for name in visible}}


@api.get("/links/{link}/history", **answers(History, 404))
def history(name: VisibleLink, hours: Hours = 24) -> Data:
    """Return rates, lag and latency of a link over the last hours."""
    seen = history_observers.newest(name)
    if seen is None:
        return {"looking": True, "error": "", "samples": []}
    samples = [sample._asdict() for sample in _newest(seen, hours)]
    return {"looking": not seen.whole, "error": seen.error, "samples": samples}


def _rates(seen: HistorySeen | None) -> list[list[float | None]]:
    return [] if seen is None else [[one.at_ms, one.records_per_second] for one in _newest(seen, SPARKLINE_HOURS)]


def _newest(seen: HistorySeen, hours: int) -> tuple[Sample, ...]:
    since_ms = seen.samples[-1].at_ms - hours * HOUR_MS if seen.samples else 0
    return tuple(sample for sample in seen.samples if sample.at_ms >= since_ms)
