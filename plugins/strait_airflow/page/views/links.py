"""Responses of the page about links and their partitions, computed from an observation. Pure."""

import weakref
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, NamedTuple

from strait.exporter.observation import Observation
from strait.planning.history.overrun import WARN_SECONDS
from strait.planning.status.needs import late_topics
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.words import STATES, Level, of_partition
from strait.reasons import Reason
from strait.state.group_sync_records import GroupSyncReport
from strait_airflow.page.views.answers import Data, some
from strait_airflow.page.views.events import last_event

LOOK_SECONDS = 2.0
"""Time between two observations of a link."""

LOSING = "losing"
BEHIND = "behind"
PERSON = str(Level.PERSON)
LOST = "lost"
"""Filters of links besides the words for their states: those that lose records within a day, lag, need an operator, or have
losses that are not acknowledged."""

_ORDER = {str(level): number for number, level in enumerate(reversed(Level))}

LINK_SORTS = ("urgency", "link", "lag_records", "lag_seconds", "seconds_to_loss", "records_per_second")

SORTS: dict[str, Callable[[PartitionStatus], Any]] = {
    "topic": lambda row: (row.topic, -1 if row.partition is None else row.partition),
    "state": lambda row: (tuple(Level).index(of_partition(row).level), row.lag_records),
    "reason": lambda row: row.reason,
    "lag_records": lambda row: row.lag_records,
    "lag_seconds": lambda row: row.lag_seconds,
    "position": lambda row: row.position,
    "end": lambda row: row.end,
    "seconds_to_loss": lambda row: -inf if row.seconds_to_loss is None else -row.seconds_to_loss,
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


@dataclass(frozen=True, slots=True)
class LinksQuestion:
    """A request for ``limit`` links from ``offset``.

    Attributes:
        search: part of a name of the link or its clusters, in any letter case.
        state: the word for a state, `PERSON`, `LOSING`, `BEHIND` or `LOST`; "" any.
        source, destination, pool: only links between these clusters, or in this pool; "" any.
        sort: one of `LINK_SORTS`; unknown values come last.
    """

    search: str = ""
    state: str = ""
    sort: str = "urgency"
    descending: bool = False
    offset: int = 0
    limit: int = 20
    source: str = ""
    destination: str = ""
    pool: str = ""


class Now(NamedTuple):
    """The time, in seconds of the monotonic clock and in ms since 1970."""

    seconds: float
    ms: int


def link_row(link: str, seen: Observation | None, now: Now) -> Data:
    """Return a link's row in the overview; after an error with the figures of the last observation."""
    if seen is None:
        badge = STATES["looking"].as_data()
        return {"link": link, "state": "looking", "badge": badge, "needs_person": False, "age_seconds": None}
    made = _MADE.get(link)
    if made is None or made[0]() is not seen:
        made = _MADE[link] = weakref.ref(seen), _of_observation(link, seen)
    facts = made[1]
    return facts | {
        "age_seconds": round(now.seconds - seen.at, 1) if facts["known"] else None,
        "consumer_groups": _groups_in_sync(seen, now.ms),
    }


_MADE: dict[str, tuple[weakref.ref[Observation], Data]] = {}
"""Link -> an observation and the part of its row that does not depend on the time. Several views and browsers show the same
observation, and to sum up 10,000 partitions takes 10 ms."""


def _of_observation(link: str, seen: Observation) -> Data:
    summary = seen.summary
    rows = partition_rows(seen)
    latencies = [group.latency_ms_p99 for group in seen.statuses if group.latency_ms_p99 is not None]
    known = not seen.error or bool(seen.plans)
    return summary.as_data() | {
        "link": link,
        "known": known,
        "pool": seen.pool,
        "every_seconds": LOOK_SECONDS,
        "latency_ms_p99": max(latencies, default=None),
        "copying": sum(row.state == "copying" for row in rows),
        "decisions": sum(row.needs_decision for row in rows),
        "needs_person": summary.badge.level is Level.PERSON,
        "needs": [need.as_data() for need in seen.needs],
        "losses": sum(seen.loss_counts.values()),
        "losses_new": seen.new_losses,
        "quarantined": sum(seen.quarantined.values()),
        "last_event": last_event(seen) if known else None,
    }


def _groups_in_sync(seen: Observation, now_ms: int) -> Data | None:
    sync = seen.group_sync
    return None if sync is None else {"all": sync.groups, "in_sync": sync.in_sync, "late": is_late(sync, now_ms)}


def is_late(report: GroupSyncReport, now_ms: int) -> bool:
    """Return whether a report on consumer groups is older than three intervals, so that it no longer describes them."""
    return now_ms - report.at_ms > 3000 * report.interval_seconds


def links_page(rows: Sequence[Data], asked: LinksQuestion) -> Data:
    """Return one page of the links, and a summary of all of them."""
    found = [row for row in rows if _link_wanted(row, asked)]
    found.sort(key=lambda row: row["link"], reverse=asked.sort == "link" and asked.descending)
    if asked.sort != "link":
        found.sort(key=lambda row: _link_order(row, asked))
    ages = [row["age_seconds"] for row in rows if row["age_seconds"] is not None]
    return {
        "links": some(found, asked.offset, asked.limit),
        "total": len(found),
        "summary": summary_line(rows),
        "age_seconds": min(ages, default=None),
        "every_seconds": LOOK_SECONDS,
    }


def summary_line(rows: Sequence[Data]) -> Data:
    """Return how many links are in which state, the largest lag, the next loss, and how many losses are not
    acknowledged."""
    states = Counter(row["badge"]["word"] for row in rows)
    levels = {row["badge"]["word"]: row["badge"]["level"] for row in sorted(rows, key=_urgency, reverse=True)}
    ordered = sorted(states.items(), key=lambda each: (_ORDER[levels[each[0]]], -each[1], each[0]))
    lags = [row["lag_seconds"] for row in rows if row.get("lag_seconds")]
    losses = [row["seconds_to_loss"] for row in rows if _losing(row)]
    return {
        "links": len(rows),
        "looking": sum(row["state"] == "looking" for row in rows),
        "person": sum(row["needs_person"] for row in rows),
        "states": [{"word": word, "level": levels[word], "count": count} for word, count in ordered],
        "lag_seconds": max(lags, default=None),
        "behind": len(lags),
        "seconds_to_loss": min(losses, default=None),
        "losing": len(losses),
        "losses_new": sum(row.get("losses_new", 0) for row in rows),
    }


def _urgency(row: Data) -> int:
    return _ORDER[row["badge"]["level"]]


def _losing(row: Data) -> bool:
    left = row.get("seconds_to_loss")
    return left is not None and left < WARN_SECONDS


def _link_wanted(row: Data, asked: LinksQuestion) -> bool:
    names = (row["link"], row.get("source", ""), row.get("destination", ""))
    if not any(asked.search.casefold() in name.casefold() for name in names):
        return False
    for name in ("source", "destination", "pool"):
        if getattr(asked, name) not in ("", row.get(name)):
            return False
    special = {PERSON: row["needs_person"], LOSING: _losing(row), BEHIND: bool(row.get("lag_seconds"))}
    special[LOST] = bool(row.get("losses_new"))
    return bool(special.get(asked.state, asked.state in ("", row["badge"]["word"])))


def _link_order(row: Data, asked: LinksQuestion) -> tuple[bool, float]:
    value: float | None = _urgency(row) if asked.sort == "urgency" else row.get(asked.sort)
    if value is None:
        return True, 0
    return False, -value if asked.descending else value


def partition_page(seen: Observation | None, asked: Question) -> Data:
    """Return one page of a link's partitions, their number, and the reasons to filter by."""
    rows = partition_rows(seen)
    reasons = sorted({row.reason for row in rows if row.reason})
    found = [row for row in rows if _wanted(row, asked)]
    found.sort(key=SORTS["topic"])  # stable: rows with an equal key below keep this order
    found.sort(key=SORTS[asked.sort], reverse=asked.descending)
    page = some(found, asked.offset, asked.limit)
    late = frozenset() if seen is None else late_topics(seen.needs)
    shown = [partition_row(row, late) for row in page]
    return {"total": len(found), "of": len(rows), "reasons": reasons, "rows": shown}


def partition_rows(seen: Observation | None) -> list[PartitionStatus]:
    """Return the partitions of all task groups."""
    return [] if seen is None else [row for group in seen.statuses for row in group.partitions]


def _wanted(row: PartitionStatus, asked: Question) -> bool:
    named = asked.search.casefold() in row.topic.casefold()
    return named and asked.reason in ("", row.reason) and asked.state in ("", row.state)


def partition_row(row: PartitionStatus, late: Collection[str] = ()) -> Data:
    """Return a partition with its state as operators see it, and the meaning and the remedy of its reason."""
    known = Reason(row.reason) if row.reason in set(Reason) else None
    words = {"meaning": known.meaning, "remedy": known.remedy} if known else {"meaning": "", "remedy": ""}
    return asdict(row) | words | {"needs_decision": row.needs_decision, "badge": of_partition(row, late).as_data()}
