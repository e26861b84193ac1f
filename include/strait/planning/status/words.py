"""The only list of words for states, with their urgency: for the terminal, the page, the DAGs and task logs. Pure.

Programs get the codes, which never change; operators see the words.
"""

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import NamedTuple

from strait.planning.status.needs import is_halted, near_loss
from strait.planning.status.rows import PartitionStatus
from strait.planning.status.status import SlotStatus
from strait.reasons import INTENDED, Kind, Reason


class Level(StrEnum):
    """Urgency of a state. The page and the terminal have a color and a sign for each."""

    GOOD = "good"  # as it should be
    QUIET = "quiet"  # on purpose, or not known yet
    PASSING = "passing"  # a problem that is expected to end automatically
    PERSON = "person"  # needs an operator


SIGNS = {Level.GOOD: "✓", Level.QUIET: "○", Level.PASSING: "↻", Level.PERSON: "!"}
"""Distinguishes levels without colors."""


class Badge(NamedTuple):
    """A state as operators see it."""

    word: str
    level: Level

    def as_data(self) -> dict[str, str]:
        return {"word": self.word, "level": str(self.level), "sign": SIGNS[self.level]}


STATES: dict[str, Badge] = {
    # partitions, topics and links
    "copying": Badge("copying", Level.GOOD),
    "caught_up": Badge("caught up", Level.GOOD),
    "starting": Badge("starting", Level.QUIET),
    "waiting": Badge("waiting", Level.PASSING),
    "halted": Badge("halted", Level.PERSON),
    "paused": Badge("paused", Level.QUIET),
    "stopped": Badge("stopped", Level.QUIET),
    "left_out": Badge("left out", Level.QUIET),
    "empty": Badge("no topics", Level.QUIET),
    "no_plan": Badge("no plan", Level.QUIET),
    "looking": Badge("being read", Level.QUIET),
    "error": Badge("unreadable", Level.PERSON),
    # slots
    "reports": Badge("reports", Level.GOOD),
    "silent": Badge("no report", Level.PASSING),
    # applications
    "submitted": Badge("submitted", Level.QUIET),
    "running": Badge("running", Level.GOOD),
    "finished": Badge("finished", Level.QUIET),
    "dead": Badge("exited", Level.PASSING),
    "unknown": Badge("unknown", Level.QUIET),
    # consumer groups
    "in_sync": Badge("in sync", Level.GOOD),
    "not_selected": Badge("not selected", Level.QUIET),
    "out_of_sync": Badge("out of sync", Level.PASSING),
    # their offsets, see `strait.planning.consumer_groups`
    "refused": Badge("refused", Level.PASSING),
    "held_shared": Badge("topic shared", Level.QUIET),
    "held_active": Badge("in use there", Level.QUIET),
    "held_moved": Badge("moved there", Level.QUIET),
    "held_own": Badge("other offset there", Level.QUIET),
    "destination_ahead": Badge("later offset there", Level.QUIET),
    "not_replicated": Badge("not replicated", Level.PASSING),
    "behind": Badge("behind", Level.PASSING),
    "rewound": Badge("rewound", Level.PASSING),
    "ahead_of_copy": Badge("ahead of the copy", Level.PASSING),
    # failovers and their steps
    "done": Badge("done", Level.GOOD),
    "aborted": Badge("aborted", Level.QUIET),
    "warning": Badge("warning", Level.PASSING),
    "failed": Badge("failed", Level.PERSON),
}
"""Code of a state -> its word and urgency."""

FINISHED = Badge("finished", Level.GOOD)
"""Of a partition that was copied up to its end."""

_SET_BY_REASON = {str(Reason.PAUSED): "paused", str(Reason.LINK_STOPPED): "stopped", str(Reason.SLOT_SILENT): "silent"}


def word(state: str) -> str:
    """Return the word for a state's code."""
    return STATES[state].word


def of_partition(row: PartitionStatus, late: Collection[str] = ()) -> Badge:
    """Return the state of a partition.

    Args:
        late: topics that need an operator for any reason, such as a lag that only grows.
    """
    badge = _of_partition(row)
    grows = row.topic in late and row.state != "caught_up" and badge.level is not Level.QUIET
    return Badge(badge.word, Level.PERSON) if grows or near_loss(row) else badge


def _of_partition(row: PartitionStatus) -> Badge:
    if row.state == "caught_up" and row.reason == Reason.FINISHED:
        return FINISHED
    if row.state != "waiting":
        return STATES[row.state]
    if is_halted(row):
        return STATES["halted"]
    if row.reason in _SET_BY_REASON:
        return STATES[_SET_BY_REASON[row.reason]]
    known = Reason(row.reason) if row.reason in set(Reason) else None
    on_purpose = known is not None and (known in INTENDED or known.kind is Kind.SKIPPED)
    return Badge(STATES["waiting"].word, Level.QUIET if on_purpose else Level.PASSING)


def of_slot(slot: SlotStatus, *, stopped: bool = False) -> Badge:
    """Return the state of a slot. ``stopped``: its plan is stopped, so no report is expected."""
    if not slot.silent:
        return STATES["reports"]
    return STATES["stopped"] if stopped else STATES["starting"] if slot.starting else STATES["silent"]


def most_urgent(badges: Iterable[Badge], default: Badge = STATES["no_plan"]) -> Badge:
    """Return the most urgent state; of equally urgent ones the first that is not `FINISHED`."""
    order = list(Level)
    return max(badges, key=lambda badge: (order.index(badge.level), badge != FINISHED), default=default)
