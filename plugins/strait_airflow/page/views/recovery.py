"""Responses of the page about recovery: a link's readiness, and reports of its failovers and rehearsals. Pure."""

from strait.exporter.observation import Observation
from strait.planning.failover import summary
from strait.planning.failover_report import screen_parts
from strait.planning.readiness import audited
from strait.planning.status.words import STATES
from strait.state.failover_records import Failover, FailoverStep
from strait_airflow.page.views.answers import Data, looked, some
from strait_airflow.page.watches.polled import Seen

_TREND_MOST = 100


def recovery_page(
    seen: Seen[tuple[Failover, ...]] | None, *, offset: int, limit: int, link: Observation | None = None
) -> Data:
    """Return the newest rehearsal with its missing steps, the verification of the topics, the latest failover, the trend, and
    one page of reports. ``link``: the link's state; None: it is not known."""
    records = () if seen is None else seen.found
    newest_first = records[::-1]
    rehearsal = next((one for one in newest_first if one.kind == "rehearsal" and one.outcome == "done"), None)
    real = next((one for one in newest_first if one.kind != "rehearsal"), None)
    page = some(newest_first, offset, limit)
    return looked(seen) | {
        "readiness": None if rehearsal is None else _readiness(rehearsal),
        "audited": _audited(link),
        "running": real is not None and real.outcome == "running",
        "fenced": real is not None and bool(real.fence),
        "newest_failover": None if real is None else _line(real),
        "trend": [_point(one) for one in records if one.outcome == "done"][-_TREND_MOST:],
        "total": len(records),
        "rows": [_line(one) for one in page],
    }


def report(seen: Seen[tuple[Failover, ...]] | None, of: str) -> Data | None:
    """Return one report with all its steps; None: there is no report with this ID.

    If the reports are unknown, the result has only `looking` and `error`.
    """
    if seen is None or (seen.error and not seen.found):
        return looked(seen)
    found = next((one for one in seen.found if one.id == of), None)
    if found is None:
        return None
    over = found.kind != "rehearsal" and found.outcome == "done"
    parts = screen_parts(found, "") if over else {}  # the page names no address of a broker
    shown = {"summary": summary(found), "screen": parts, "steps": [_step(step) for step in found.steps]}
    return looked(seen) | found.model_dump(mode="json") | shown


def _readiness(rehearsal: Failover) -> Data:
    missing = [step for step in rehearsal.steps if step.verdict != "done"]
    return {
        "id": rehearsal.id,
        "at_ms": rehearsal.began_at_ms,
        "score": rehearsal.score,
        "steps": len(rehearsal.steps),
        "missing": [_step(step) for step in missing],
    }


def _audited(seen: Observation | None) -> Data | None:
    if seen is None or not seen.plans:
        return None
    topics = {topic.source for plan in seen.plans.values() for topic in plan.topics}
    check = audited(seen.link, topics, seen.audited)
    return {"verdict": check.verdict, "badge": STATES[check.verdict].as_data(), "detail": check.detail}


def _step(step: FailoverStep) -> Data:
    return step.model_dump(mode="json") | {"badge": STATES[step.verdict].as_data()}


def _line(record: Failover) -> Data:
    shown = {"id", "kind", "outcome", "by", "reason", "began_at_ms", "ended_at_ms", "groups", "groups_exact"}
    figures = {"rpo_records", "rpo_seconds", "rto_seconds", "score", "wave_topics", "wave_groups"}
    line = record.model_dump(mode="json", include=shown | figures)
    return line | {"badge": STATES[record.outcome].as_data()}


def _point(record: Failover) -> Data:
    return record.model_dump(mode="json", include={"kind", "began_at_ms", "rto_seconds", "rpo_seconds", "score"})
