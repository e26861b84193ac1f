"""Summarizes each link of a links file in one line. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from strait.planning.status.needs import Need, late_topics
from strait.planning.status.rows import longest_lag
from strait.planning.status.status import Status, known_total
from strait.planning.status.words import FINISHED, STATES, Badge, Level, most_urgent, of_partition, of_slot, word
from strait.reasons import INTENDED, Reason
from strait.state.schema import Pause


@dataclass(frozen=True, slots=True)
class LinkSummary:
    """Key figures of a link.

    Attributes:
        state: `copying`, `waiting` (a partition or topic waits that should not), `paused` (the whole link),
            `stopped`, `no_plan`, or `error`.
        waiting: reason -> number of partitions.
        healthy: it has a plan, no partition needs a decision, and every slot reports.
        badge: the state as operators see it, with its urgency.
        lag_records: total of the partitions whose lag is known; None: of none.
        lag_seconds: the maximum of those; None: unknown.
        lag_known: whether the lag of every partition is known; else the lag may exceed ``lag_records``.
        lag_unknown: number of the other partitions.
        seconds_to_loss: of the partition that retention reaches first; None: not foreseen.
        records_per_second: None: no slot reports.
        error: why the link could not be read; the figures are meaningless then.
        needs: number of actions of an operator that it needs; see `strait.planning.status.needs`.
        held_back_records: held back by open transactions on the source.
    """

    link: str
    source: str = ""
    destination: str = ""
    state: str = "error"
    topics: int = 0
    partitions: int = 0
    caught_up: int = 0
    lag_records: int | None = None
    records_per_second: float | None = None
    waiting: tuple[tuple[str, int], ...] = ()
    healthy: bool = False
    lag_known: bool = False
    error: str = ""
    held_back_records: int | None = None
    needs: int = 0
    badge: Badge = STATES["error"]
    lag_seconds: float | None = None
    lag_unknown: int = 0
    seconds_to_loss: float | None = None

    def as_data(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self) | {"waiting": dict(self.waiting), "badge": self.badge.as_data()}

    @property
    def trouble(self) -> str:
        """Problems to report to an operator, as text; "" if there are none."""
        return self.error or ", ".join(
            f"{count} {reason}" for reason, count in self.waiting if reason != Reason.LINK_STOPPED
        )


def summary_of(
    link: str,
    source: str,
    destination: str,
    groups: Iterable[Status],
    pauses: Iterable[Pause],
    needs: Sequence[Need] = (),
) -> LinkSummary:
    """Sum up all task groups of a link."""
    groups = tuple(groups)
    late = late_topics(needs)
    rows = [row for group in groups for row in group.partitions]
    waiting = Counter(row.reason for row in rows if row.state == "waiting")
    state = _state(groups, waiting, paused=any(not item.topic for item in pauses))
    healthy = bool(groups) and all(group.healthy for group in groups)
    nothing = 0 if groups else None  # without a plan nothing is known
    badge = _badge(state, groups, [of_partition(row, late) for row in rows])
    return LinkSummary(
        link=link,
        source=source,
        destination=destination,
        state=state,
        topics=len({row.topic for row in rows}),
        partitions=sum(row.partition is not None for row in rows),
        caught_up=sum(row.state == "caught_up" for row in rows),
        lag_records=known_total((row.lag_records for row in rows), empty=nothing),
        held_back_records=known_total((row.held_back_records for row in rows), empty=nothing),
        records_per_second=known_total(group.records_per_second for group in groups),
        waiting=tuple(sorted(waiting.items())),
        healthy=healthy,
        lag_known=bool(groups) and all(group.lag_known for group in groups),
        needs=len(needs),
        badge=Badge(badge.word, Level.PERSON) if needs else badge,
        lag_seconds=longest_lag(rows),
        lag_unknown=sum(group.lag_unknown for group in groups),
        seconds_to_loss=min((row.seconds_to_loss for row in rows if row.seconds_to_loss is not None), default=None),
    )


def _badge(state: str, groups: tuple[Status, ...], partitions: Sequence[Badge]) -> Badge:
    """Return the state of a link as operators see it: that of the whole link, else the most urgent of its partitions."""
    slots = [of_slot(slot) for group in groups if not group.stopped for slot in group.slots]
    urgent = most_urgent((*partitions, *slots), STATES["copying"])
    if state in ("no_plan", "stopped", "paused"):
        return STATES[state]._replace(level=Level.PERSON) if urgent.level is Level.PERSON else STATES[state]
    if urgent.level in (Level.PASSING, Level.PERSON):
        return urgent
    words = {badge.word for badge in partitions if badge != FINISHED}
    if not words:
        return FINISHED if partitions else STATES["empty"]
    return (
        STATES["caught_up"]
        if words == {word("caught_up")}
        else STATES["copying"]
        if word("copying") in words
        else urgent
    )


def _state(groups: tuple[Status, ...], waiting: Counter[str], *, paused: bool) -> str:
    if not groups:
        return "no_plan"
    if all(group.stopped for group in groups):
        return "stopped"
    if paused:
        return "paused"
    return "waiting" if set(waiting) - INTENDED else "copying"
