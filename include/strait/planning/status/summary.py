"""Summarizes each link of a links file in one line. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from strait.planning.status.status import Status
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
        lag_known: whether the lag of every partition is known; else the lag may exceed ``lag_records``.
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
    lag_records: int = 0
    records_per_second: float = 0.0
    waiting: tuple[tuple[str, int], ...] = ()
    healthy: bool = False
    lag_known: bool = False
    error: str = ""
    held_back_records: int = 0
    needs: int = 0

    def as_data(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self) | {"waiting": dict(self.waiting)}

    @property
    def trouble(self) -> str:
        """Problems to report to an operator, as text; "" if there are none."""
        return self.error or ", ".join(
            f"{count} {reason}" for reason, count in self.waiting if reason != Reason.LINK_STOPPED
        )


def summary_of(
    link: str, source: str, destination: str, groups: Iterable[Status], pauses: Iterable[Pause], needs: int = 0
) -> LinkSummary:
    """Sum up all task groups of a link."""
    groups = tuple(groups)
    rows = [row for group in groups for row in group.partitions]
    waiting = Counter(row.reason for row in rows if row.state == "waiting")
    return LinkSummary(
        link=link,
        source=source,
        destination=destination,
        state=_state(groups, waiting, paused=any(not item.topic for item in pauses)),
        topics=len({row.topic for row in rows}),
        partitions=sum(row.partition is not None for row in rows),
        caught_up=sum(row.state == "caught_up" for row in rows),
        lag_records=sum(group.lag_records for group in groups),
        held_back_records=sum(group.held_back_records for group in groups),
        records_per_second=sum(group.records_per_second for group in groups),
        waiting=tuple(sorted(waiting.items())),
        healthy=bool(groups) and all(group.healthy for group in groups),
        lag_known=bool(groups) and all(group.lag_known for group in groups),
        needs=needs,
    )


def _state(groups: tuple[Status, ...], waiting: Counter[str], *, paused: bool) -> str:
    if not groups:
        return "no_plan"
    if all(group.stopped for group in groups):
        return "stopped"
    if paused:
        return "paused"
    return "waiting" if set(waiting) - INTENDED else "copying"
