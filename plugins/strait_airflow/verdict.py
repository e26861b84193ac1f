"""The verdict of a run: whether the link needs an operator, for an incident that is new or already known. Pure."""

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from strait.text import utc
from strait_airflow.noticing import Judged

KNOWN = "known since"
"""First words of the note of a green run whose incidents an earlier red run has reported."""

UNCHECKED = "not checked by this run"
"""Suffix of an incident of which a run could not determine whether it lasts."""

RED_AGAIN_MS = 24 * 3600 * 1000
"""An incident that lasts makes another run red after this time."""

_KNOWN_MOST = 200
"""Incidents that are remembered. Further ones are new in each run."""


class Incident(NamedTuple):
    """Something that needs an operator. ``id`` is the same in every run that finds it, and differs for another cause."""

    id: str
    line: str


class Failure(NamedTuple):
    """A failed step. ``cause`` is the same for every step and run that fails for it; see `errors.cause_of`."""

    cause: str
    text: str


class Verdict(NamedTuple):
    """The result for one run.

    Attributes:
        lines: one for each incident that this run has found, new ones first; none: no operator is needed.
        kept: further known incidents, which this run could not check, by their identity.
        since_ms: when the oldest incident became known; 0: all are new, or there are none.
        is_red: an incident is new, or it is a day since a run was red for it.
        judged: the state to store.
    """

    lines: tuple[str, ...]
    kept: tuple[str, ...]
    since_ms: int
    is_red: bool
    judged: Judged

    @property
    def headline(self) -> str:
        if self.is_red:
            return f"needs an operator: {self.lines[0]}"
        if self.since_ms:
            return f"{KNOWN} {utc(self.since_ms)} UTC: {self.incidents[0]}"
        return "needs no operator"

    @property
    def incidents(self) -> tuple[str, ...]:
        """One line for each incident that is known after this run; that of a kept one includes that it was not checked."""
        return (*self.lines, *(f"{id_} ({UNCHECKED})" for id_ in self.kept))


def verdict_of(
    planning: Iterable[Failure],
    others: Iterable[Failure],
    needs: Sequence[Incident] | None,
    judged: Judged,
    run: str,
    now_ms: int,
    *,
    partial: bool = False,
    planned: bool = True,
    submit_failed: bool = False,
) -> Verdict:
    """Return the verdict of a run. An incident that it could not check stays known, so it is not new afterwards.

    Args:
        planning: the failures of its planning. A cause that several steps report is one incident.
        others: those of its other steps.
        needs: those of the link; None: unknown.
        judged: the stored state.
        partial: slots do not report all partitions yet, so the link may need more than ``needs``; see `gauges.Measured`.
        planned: it has planned, or tried to.
        submit_failed: an application could not be submitted.
    """
    of_planning = {incident.id: incident for incident in map(_incident, planning)}
    failed = of_planning | {one.id: one for one in map(_incident, others) if one.id not in of_planning}
    present = [*failed.values(), *(needs or ())]
    found, known = {incident.id for incident in present}, judged.known
    unseen = {
        id_: since
        for id_, since in known.items()
        if id_ not in found and _is_unseen(id_, judged, planned=planned, needs_known=needs is not None and not partial)
    }
    due = [one.id for one in present if _is_due(judged.red.get(one.id), judged.ended.get(run), now_ms)]
    remembered = unseen | {one.id: known.get(one.id, now_ms) for one in present[:_KNOWN_MOST]}
    red = {id_: now_ms if due and id_ in found else judged.red.get(id_, 0) for id_ in remembered}
    after = judged._replace(
        known=remembered,
        red=red,
        planning=tuple(sorted({*of_planning, *(() if planned else judged.planning)} & remembered.keys())),
        attention=judged.attention if needs is None else attention_of(_needs(present, unseen)),
        failed=submit_failed,
    ).ending(run, now_ms)
    new = [one.line for one in present if one.id not in known]
    old = [f"{one.line}{_since(known[one.id]) if due else ''}" for one in present if one.id in known]
    since_ms = min((since for id_, since in known.items() if id_ in found or id_ in unseen), default=0)
    kept = tuple(id_.removeprefix(_FAILURE) for id_ in unseen)
    return Verdict((*new, *old), kept, since_ms, bool(due), after)


def unchanged(judged: Judged, run: str, now_ms: int) -> Verdict:
    """Return the verdict of a run that has checked nothing."""
    kept = tuple(id_.removeprefix(_FAILURE) for id_ in judged.known)
    return Verdict((), kept, min(judged.known.values(), default=0), False, judged.ending(run, now_ms))


def _since(at_ms: int) -> str:
    return f" ({KNOWN} {utc(at_ms)} UTC)"


def _is_due(red_ms: int | None, judged_ms: int | None, now_ms: int) -> bool:
    """Return whether an incident makes a run red. One that made this run red does so again if it is judged again, as after a
    worker that died."""
    return red_ms is None or red_ms == judged_ms or now_ms - red_ms >= RED_AGAIN_MS


def _is_unseen(id_: str, judged: Judged, *, planned: bool, needs_known: bool) -> bool:
    """Return whether a run could not determine if the incident lasts."""
    return not needs_known if not id_.startswith(_FAILURE) else not planned and id_ in judged.planning


def _needs(present: Iterable[Incident], unseen: Iterable[str]) -> set[str]:
    ids = {*(incident.id for incident in present), *unseen}
    return {id_ for id_ in ids if not id_.startswith(_FAILURE)}


def attention_of(ids: Iterable[str]) -> str:
    """Return a digest of the needs of a link; "" if there are none."""
    text = "\n".join(sorted(ids))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest() if text else ""


def note_lines(verdict: Verdict, reasons: Collection[str], done: str) -> list[str]:
    """Return the lines of the run's note: incidents first, if there are any, and why the run was started.

    Args:
        done: the result of the run, in one line.
    """
    result = [done] if done else []
    incidents = [f"- {line}" for line in verdict.incidents]
    if not incidents:
        return [*reasons, *result]
    head = "needs an operator:" if verdict.is_red else f"{KNOWN} {utc(verdict.since_ms)} UTC:"
    because = [f"run because: {_without(verdict.lines, reason)}" for reason in reasons]
    return [head, *incidents, *because, *([] if verdict.is_red else result)]


def _without(lines: Iterable[str], reason: str) -> str:
    """Return the reason without its details if one of the lines has them, or reports the same cluster."""
    head, _, details = reason.partition(": ")
    cluster = _CLUSTER.match(details)
    known = details if cluster is None else cluster.group()
    return head if details and any(line.startswith(known) for line in lines) else reason


_FAILURE = "failure "
_CLUSTER = re.compile(r"cluster [\w.-]+: ")
"""Start of every error of a cluster; the rest differs with the operation that failed first."""


def _incident(failure: Failure) -> Incident:
    return Incident(f"{_FAILURE}{failure.cause}", failure.text)
