"""Responses of the page about links and their partitions, computed from an observation. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from strait.exporter.observation import Observation
from strait.planning.plan.pauses import pauses_of
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.summary import summary_of
from strait.reasons import Reason
from strait_airflow.page.views.answers import Data, some
from strait_airflow.page.views.events import last_event

_URGENT = {"error": 0, "waiting": 2, "no_plan": 3, "looking": 4, "paused": 5, "stopped": 6, "copying": 7}
_DECISION = 1

SORTS: dict[str, Callable[[PartitionStatus], Any]] = {
    "topic": lambda row: (row.topic, -1 if row.partition is None else row.partition),
    "state": lambda row: row.state,
    "reason": lambda row: row.reason,
    "lag_records": lambda row: row.lag_records,
    "lag_seconds": lambda row: row.lag_seconds,
    "position": lambda row: row.position,
    "end": lambda row: row.end,
}


@dataclass(frozen=True, slots=True)
class Question:
    """A request for ``limit`` partitions from ``offset``.

    Attributes:
        search: part of the topic's name, in any letter case.
        reason: only partitions with this reason; "" any.
        state: only partitions in this state; "" any.
    """

    search: str = ""
    reason: str = ""
    state: str = ""
    sort: str = "lag_records"
    descending: bool = True
    offset: int = 0
    limit: int = 20


def link_row(link: str, seen: Observation | None) -> Data:
    """Return a link's row in the overview."""
    if seen is None:
        return {"link": link, "state": "looking", "needs_person": False, "urgency": _URGENT["looking"]}
    if seen.error:
        found = {"source": seen.source, "destination": seen.destination, "error": seen.error}
        return {"link": link, **found, "state": "error", "needs_person": True, "urgency": _URGENT["error"]}
    summary = summary_of(link, seen.source, seen.destination, seen.statuses, pauses_of(seen.plans.values()))
    summary = replace(summary, needs=len(seen.needs))
    rows = partition_rows(seen)
    decisions = sum(row.needs_decision for row in rows)
    latencies = [group.latency_ms_p99 for group in seen.statuses if group.latency_ms_p99 is not None]
    return summary.as_data() | {
        "lag_seconds": max((row.lag_seconds for row in rows), default=-1.0),
        "latency_ms_p99": max(latencies, default=None),
        "copying": sum(row.state == "copying" for row in rows),
        "decisions": decisions,
        "needs_person": not summary.healthy or bool(seen.needs),
        "needs": [need.as_data() for need in seen.needs],
        "consumer_groups": None if (sync := seen.group_sync) is None else {"all": sync.groups, "in_sync": sync.in_sync},
        "losses": sum(seen.loss_counts.values()),
        "quarantined": sum(seen.quarantined.values()),
        "last_event": last_event(seen),
        "urgency": _URGENT[summary.state]
        if summary.healthy and not seen.needs
        else min(_DECISION, _URGENT[summary.state]),
    }


def by_urgency(rows: Sequence[Data]) -> list[Data]:
    """Return the rows sorted: links that need an operator first, then waiting ones."""
    return sorted(rows, key=lambda row: (row["urgency"], row["link"]))


def partition_page(seen: Observation | None, asked: Question) -> Data:
    """Return one page of a link's partitions, their number, and the reasons to filter by."""
    rows = partition_rows(seen)
    reasons = sorted({row.reason for row in rows if row.reason})
    found = [row for row in rows if _wanted(row, asked)]
    found.sort(key=SORTS["topic"])  # stable: rows with an equal key below keep this order
    found.sort(key=SORTS[asked.sort], reverse=asked.descending)
    page = some(found, asked.offset, asked.limit)
    return {"total": len(found), "of": len(rows), "reasons": reasons, "rows": [partition_row(row) for row in page]}


def partition_rows(seen: Observation | None) -> list[PartitionStatus]:
    """Return the partitions of all task groups."""
    return [] if seen is None else [row for group in seen.statuses for row in group.partitions]


def _wanted(row: PartitionStatus, asked: Question) -> bool:
    named = asked.search.casefold() in row.topic.casefold()
    return named and asked.reason in ("", row.reason) and asked.state in ("", row.state)


def partition_row(row: PartitionStatus) -> Data:
    """Return a partition with the meaning and the remedy of its reason."""
    known = Reason(row.reason) if row.reason in set(Reason) else None
    words = {"meaning": known.meaning, "remedy": known.remedy} if known else {"meaning": "", "remedy": ""}
    return asdict(row) | words | {"needs_decision": row.needs_decision}
