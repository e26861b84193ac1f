"""Metrics of links over the last 30 days, and their events."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from strait.planning.history.sample import Sample
from strait.waiting import unix_ms
from strait_airflow.page.observers import (
    applications_observers,
    failovers_observers,
    history_observers,
    hours_observers,
    observers,
)
from strait_airflow.page.schemas.common import answers
from strait_airflow.page.schemas.details import History, Rates
from strait_airflow.page.security import VisibleLink, VisibleLinks
from strait_airflow.page.views.answers import Data
from strait_airflow.page.views.events import events_since
from strait_airflow.page.watches.history import HOUR_MS, HistorySeen
from strait_airflow.page.watches.polled import DAYS_KEPT

SPARKLINE_HOURS = 6
MINUTES_HOURS = 24
"""Hours of which there are more samples than one per hour."""

api = APIRouter(prefix="/api/v1")
Hours = Annotated[int, Query(ge=1, le=24 * DAYS_KEPT)]


@api.get("/history", **answers(Rates))
def rates(visible: VisibleLinks) -> Data:
    """Return the records per second of each link over the last 6 hours."""
    return {"links": {name: _rates(history_observers.newest(name)) for name in visible}}


@api.get("/links/{link}/history", **answers(History, 404))
def history(name: VisibleLink, hours: Hours = 24) -> Data:
    """Return rates, lag and latency of a link over the last hours, and the events in that time that are still known."""
    seen, now_ms = history_observers.newest(name), unix_ms()
    failovers, applications = failovers_observers.newest(name), applications_observers.newest(name)
    events = events_since(
        now_ms - hours * HOUR_MS,
        observers.newest(name),
        () if failovers is None else failovers.found,
        () if applications is None else applications.found,
    )
    known = {"now_ms": now_ms, "events": events}
    if seen is None:
        return known | {"looking": True, "error": "", "samples": []}
    found, looking, error = list(_newest(seen, hours)), not seen.whole, seen.error
    if hours > MINUTES_HOURS:
        past = hours_observers.newest(name)
        looking, error = looking or past is None, error or ("" if past is None else past.error)
        found = _before(() if past is None else past.found, found) + found
    return known | {"looking": looking, "error": error, "samples": [sample._asdict() for sample in found]}


def _before(past: Sequence[Sample], newer: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in past if not newer or sample.at_ms < newer[0].at_ms]


def _rates(seen: HistorySeen | None) -> list[list[float | None]]:
    return [] if seen is None else [[one.at_ms, one.records_per_second] for one in _newest(seen, SPARKLINE_HOURS)]


def _newest(seen: HistorySeen, hours: int) -> tuple[Sample, ...]:
    since_ms = seen.samples[-1].at_ms - hours * HOUR_MS if seen.samples else 0
    return tuple(sample for sample in seen.samples if sample.at_ms >= since_ms)
