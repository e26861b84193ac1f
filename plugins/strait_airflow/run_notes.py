"""Stores why a link's watch has started a run as the run's note, which Airflow shows in its lists of runs.

A task cannot do that, as it has no access to Airflow's database; the scheduler calls this when the run starts.
"""

from typing import TYPE_CHECKING

from airflow.listeners import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow.models.dagrun import DagRun


NOTE_CHARACTERS = 1000
"""Limit of Airflow's column. A database that enforces it rejects a longer note, and the scheduler exits each time."""


class RunNotes:
    """Listener for started runs. Airflow logs exceptions that are raised here, and continues."""

    @hookimpl
    def on_dag_run_running(self, dag_run: "DagRun", msg: str) -> None:
        from strait_airflow.settings import is_watch

        reasons = [
            reason
            for event in dag_run.consumed_asset_events
            if is_watch(event.asset.name)
            for reason in (event.extra or {}).get("payload", {}).get("reasons", ())
        ]
        if reasons and not dag_run.note:
            dag_run.note = note_of(reasons)


def note_of(reasons: "Iterable[str]") -> str:
    """Return each distinct reason on its own line, cut to `NOTE_CHARACTERS`."""
    text = "\n".join(dict.fromkeys(reasons)).replace("\0", "")
    return text if len(text) <= NOTE_CHARACTERS else f"{text[: NOTE_CHARACTERS - 1]}…"
