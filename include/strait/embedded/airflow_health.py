"""The health of Airflow's components, by the age of their heartbeats."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx

from strait.errors import SetupError

CONSEQUENCES = {
    "metadatabase": "nothing in Airflow works",
    "scheduler": "no run is started",
    "triggerer": "events start no run, and links are only checked once an hour",
    "dag_processor": "edits of the links file do not change the DAGs",
}
"""Component -> the consequence if it does not run. Applications continue to replicate in every case."""

_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Component:
    """One component. ``age_seconds``: time since its last heartbeat; None: it has none, or was never started."""

    name: str
    healthy: bool
    age_seconds: float | None

    @property
    def problem(self) -> str:
        """One line, or "" if it is healthy."""
        if self.healthy:
            return ""
        age = "no heartbeat" if self.age_seconds is None else f"last heartbeat {self.age_seconds:,.0f} s ago"
        return f"{self.name}: {age}: {CONSEQUENCES.get(self.name, '')}"


def components_of(health: Mapping[str, Any], now: datetime) -> list[Component]:
    """Return the components that Airflow's health endpoint reports."""
    found = []
    for name in CONSEQUENCES:
        state = health.get(name) or {}
        at = state.get(f"latest_{name}_heartbeat")
        age = None if not at else max(0.0, (now - datetime.fromisoformat(at)).total_seconds())
        found.append(Component(name, state.get("status") == "healthy", age))
    return found


def components_at(url: str) -> list[Component]:
    """Return the components of the Airflow at this URL. Needs no login.

    Raises:
        SetupError: it does not respond.
    """
    try:
        reply = httpx.get(f"{url.rstrip('/')}/api/v2/monitor/health", timeout=_TIMEOUT_SECONDS, trust_env=False)
        reply.raise_for_status()
        return components_of(reply.json(), datetime.now(UTC))
    except (httpx.HTTPError, ValueError) as error:
        raise SetupError(f"Airflow at {url}: reading its health: {error}", hint="start its API server") from error
