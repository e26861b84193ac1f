"""The verdict of a run: whether the link needs an operator, for an incident that is new or already known. Pure."""

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from strait_airflow.noticing import Judged

STILL = "still needs an operator"
"""First words of the note of a run whose incidents are all known: their notifiers were called before."""

_KNOWN_MOST = 200
"""Incidents that are remembered. Further ones are new in each run."""


class Incident(NamedTuple):
    """Something that needs an operator. ``id`` is the same in every run that finds it."""

    id: str
    line: str


class Verdict(NamedTuple):
    """The result for one run.

    Attributes:
        lines: one for each incident, new ones first; none: no operator is needed.
        since_ms: when the oldest incident became known; 0: all are new, or there are none.
        is_new: at least one incident is new.
        judged: the state to store.
    """

    lines: tuple[str, ...]
    since_ms: int
    is_new: bool
    judged: Judged

    @property
    def headline(self) -> str:
        if not self.lines:
            return "needs no operator"
        return f"needs an operator: {self.lines[0]}" if self.is_new else f"{STILL}: {self.lines[0]}"


def verdict_of(
    failures: Iterable[str],
    needs: Sequence[Incident] | None,
    judged: Judged,
    run: str,
    now_ms: int,
    *,
    submit_failed: bool = False,
) -> Verdict:
    """Return the verdict of a run.

    Args:
        failures: messages of the run's failed steps. A cause that several steps report is one incident.
        needs: those of the link; None: unknown, so the known ones are kept.
        judged: the stored state.
    """
    failed = {incident.id: incident for incident in map(_failure, failures)}
    present = [*failed.values(), *(needs or ())]
    known = judged.known
    new = [incident for incident in present if incident.id not in known]
    old = [incident for incident in present if incident.id in known]
    kept = {} if needs is not None else {id_: at for id_, at in known.items() if not id_.startswith(_FAILURE)}
    remembered = kept | {incident.id: known.get(incident.id, now_ms) for incident in present[:_KNOWN_MOST]}
    attention = judged.attention if needs is None else attention_of(incident.id for incident in needs)
    after = judged._replace(known=remembered, attention=attention, failed=submit_failed).ending(run, now_ms)
    since_ms = min((known[incident.id] for incident in old), default=0)
    return Verdict(tuple(incident.line for incident in (*new, *old)), since_ms, bool(new), after)


def attention_of(ids: Iterable[str]) -> str:
    """Return a digest of the needs of a link; "" if there are none."""
    text = "\n".join(sorted(ids))
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest() if text else ""


def note_lines(verdict: Verdict, reasons: Collection[str], done: str, since: str) -> list[str]:
    """Return the lines of the run's note: incidents first, if there are any, and why the run was started.

    Args:
        done: the result of the run, in one line.
        since: when the oldest known incident became known, as text.
    """
    if not verdict.lines:
        return [*reasons, *([done] if done else [])]
    head = "needs an operator:" if verdict.is_new else f"{STILL}, since {since} UTC:"
    return [head, *(f"- {line}" for line in verdict.lines), *(f"run because: {reason}" for reason in reasons)]


_FAILURE = "failure "


def _failure(message: str) -> Incident:
    """Return the incident of a failed step. Its identity is the component that the message names first."""
    return Incident(f"{_FAILURE}{message.partition(':')[0]}", message)
