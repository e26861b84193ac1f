"""Stores why a run was started, and how it ended, as the run's note, which Airflow shows in its lists of runs.

A task cannot do that, as it has no access to Airflow's database; the scheduler calls this when the run starts and ends.
"""

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.listeners import hookimpl

from strait_airflow.foreign_text import as_markdown
from strait_airflow.stored import notices_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow.models.dagrun import DagRun
    from sqlalchemy.orm import Session


NOTE_CHARACTERS = 1000
"""Limit of Airflow's column. A database that enforces it rejects a longer note, and the scheduler exits each time."""

_EDITED = re.compile(r"Airflow (Variable|Connection) ([\w.-]+)")
_EDITED_WITHIN = timedelta(minutes=10)
"""Maximum age of an edit in Airflow's audit log, so that a run names no earlier editor."""

_LOG_ROWS_MOST = 200


class RunNotes:
    """Listener for runs of links' DAGs. Airflow logs exceptions that are raised here, and continues."""

    @hookimpl
    def on_dag_run_running(self, dag_run: "DagRun", msg: str) -> None:
        if _is_links(dag_run) and not dag_run.note:
            dag_run.note = _first_note(dag_run)

    @hookimpl
    def on_dag_run_success(self, dag_run: "DagRun", msg: str) -> None:
        self._ended(dag_run)

    @hookimpl
    def on_dag_run_failed(self, dag_run: "DagRun", msg: str) -> None:
        self._ended(dag_run)

    def _ended(self, dag_run: "DagRun") -> None:
        """Replace the note by that of the task that judged the run; keep the names of its user and of editors."""
        if not _is_links(dag_run):
            return
        _name_starts(dag_run)
        if (found := _judged(dag_run)) is not None:
            dag_run.note = note_of([*found.splitlines(), *_people(dag_run)])


def note_of(reasons: "Iterable[str]") -> str:
    """Return Markdown with each distinct reason on its own line, printable, cut to `NOTE_CHARACTERS`."""
    from strait.text import printable_lines

    text = as_markdown(printable_lines("\n".join(dict.fromkeys(reasons))))
    return text if len(text) <= NOTE_CHARACTERS else f"{text[: NOTE_CHARACTERS - 1]}…"


def _is_links(dag_run: "DagRun") -> bool:
    return dag_run.dag_id.startswith("strait_")


def _first_note(dag_run: "DagRun") -> str:
    from strait_airflow.noticing import reasons_of

    return note_of([*reasons_of(_notices(dag_run)), *_people(dag_run)])


def _notices(dag_run: "DagRun") -> list[Any]:
    from strait_airflow.settings import is_watch

    events = [event for event in dag_run.consumed_asset_events if is_watch(event.asset.name)]
    ordered = sorted(events, key=lambda event: (event.timestamp, event.id))
    return notices_of(event.extra for event in ordered)


def _people(dag_run: "DagRun") -> list[str]:
    """Return the user that triggered the run, or those that edited the settings, according to Airflow's audit log."""
    notices = _notices(dag_run)
    if not notices:
        if dag_run.run_type == "manual":
            conf = dag_run.conf or {}
            wants = f" to restart {conf['restart']}" if conf.get("restart") else ""
            return [f"triggered by {dag_run.triggering_user_name or 'the API'}{wants}"]
        return ["hourly run" if _has_earlier(dag_run) else "first run of this DAG"]
    edited = dict.fromkeys(match for notice in notices for text in notice["reasons"] for match in _EDITED.findall(text))
    return [line for kind, name in edited if (line := _editor(dag_run, kind, name))]


def _has_earlier(dag_run: "DagRun") -> bool:
    from airflow.models.dagrun import DagRun as Runs
    from sqlalchemy import select

    session = _session(dag_run)
    if session is None:
        return True
    earlier = select(Runs.id).where(Runs.dag_id == dag_run.dag_id, Runs.id < dag_run.id).limit(1)
    return session.scalar(earlier) is not None


def _editor(dag_run: "DagRun", kind: str, name: str) -> str:
    """Return the last editor, shortly before the run; "" if the audit log does not show it."""
    from airflow.models.log import Log
    from sqlalchemy import select

    session, until = _session(dag_run), dag_run.queued_at or dag_run.run_after
    if session is None or until is None:
        return ""
    rows = session.execute(
        select(Log.owner, Log.extra, Log.dttm)
        .where(Log.event.like(f"%{kind.lower()}%"), Log.dttm >= until - _EDITED_WITHIN)
        .where(Log.dttm <= until + timedelta(minutes=1), Log.extra.contains(name))
        .order_by(Log.dttm.desc())
        .limit(_LOG_ROWS_MOST)
    )
    exact = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
    for owner, extra, at in rows:
        if owner and exact.search(extra or ""):
            return f"{kind} {name} edited by {owner} at {at:%H:%M:%S} UTC"
    return ""


def _name_starts(dag_run: "DagRun") -> None:
    """Give each instance of `healthy` the name that a worker gave that of `submit`: the triggerer names none."""
    from strait_airflow.steps import HEALTHY, SUBMIT

    if (session := _session(dag_run)) is None:
        return
    found = {(ti.task_id, ti.map_index): ti for ti in dag_run.get_task_instances(session=session)}
    for (task, index), ti in found.items():
        if task == HEALTHY and (submitted := found.get((SUBMIT, index))) is not None:
            ti._rendered_map_index = submitted.rendered_map_index  # noqa: SLF001  Airflow has no other way


def _judged(dag_run: "DagRun") -> str | None:
    """Return the note that a task of the run has made, `verdict` or that of an approval; None: that did not run."""
    from airflow.models.xcom import XComModel
    from sqlalchemy import select

    from strait_airflow.steps import NOTE

    session = _session(dag_run)
    if session is None:
        return None
    where = {"dag_id": dag_run.dag_id, "run_id": dag_run.run_id, "key": NOTE}
    found = session.scalar(select(XComModel).filter_by(**where))
    return None if found is None else str(XComModel.deserialize_value(found))


def _session(dag_run: "DagRun") -> "Session | None":
    from sqlalchemy.orm import object_session

    return object_session(dag_run)
