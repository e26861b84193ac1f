"""Writes on each run that a link's watch has started why it was: as the run's note, which Airflow shows in its lists.

A task cannot do that, as it has no access to Airflow's database; the scheduler calls this when the run begins.
"""

from typing import TYPE_CHECKING

from airflow.listeners import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow.models.dagrun import DagRun


NOTE_CHARACTERS = 1000
"""Of Airflow's column. A database that keeps to it refuses the row, and with it ends the scheduler, again and again."""


class RunNotes:
    """Airflow logs what is raised here, and goes on."""

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
    """Each reason once, as many as there is room for."""
    text = "\n".join(dict.fromkeys(reasons)).replace("\0", "")
    return text if len(text) <= NOTE_CHARACTERS else f"{text[: NOTE_CHARACTERS - 1]}…"
