"""The only module that assembles a task group's status from its plan and its slots' reports: for `strait status`,
`strait run` and the monitor DAG's metrics."""

from collections import defaultdict
from collections.abc import Collection
from weakref import WeakKeyDictionary

from strait.control.report_history import PastReports
from strait.planning.history.pace import pace_of
from strait.planning.status.notes import with_deleted
from strait.planning.status.rows import Rows
from strait.planning.status.status import Status, status_of
from strait.state.link_handle import ConfiguredLink
from strait.state.reader import StateReader
from strait.waiting import unix_ms

_past: WeakKeyDictionary[StateReader, PastReports] = WeakKeyDictionary()
"""Kept so that repeated calls rarely read past reports."""
_rows: WeakKeyDictionary[StateReader, defaultdict[str, Rows]] = WeakKeyDictionary()
"""By task group; kept so that repeated calls reuse rows of partitions with nothing left to copy and no new report."""


def group_status(
    link: ConfiguredLink,
    group: str,
    state: StateReader,
    topic: str | None = None,
    heard: Collection[tuple[str, int]] = (),
) -> Status:
    """Return the state of each partition of a task group, with predicted losses and the pace at which it catches up.

    Args:
        state: follows at least `plan` and `reports`, and has caught up; for notes on deleted records `losses`, too.
        topic: only this source topic.
        heard: (task group, slot) of those that have reported just now, regardless of the clocks.

    Raises:
        ConfigError: the plan has no such topic.
        ClusterUnavailable, NotAuthorized: older reports cannot be read.
    """
    past = _past.setdefault(state, PastReports(*link.destination, link.name))
    plan, now_ms = state.plans.get(group), unix_ms()
    status = status_of(
        link.name,
        group,
        plan,
        state.reports,
        now_ms,
        topic,
        past.of(group, state.reports),
        None if plan is None else pace_of(plan, state.earlier_reports, state.reports),
        _rows.setdefault(state, defaultdict(Rows))[group],
        {slot for name, slot in heard if name == group},
        state.failures,
    )
    return with_deleted(status, state.losses, now_ms)
