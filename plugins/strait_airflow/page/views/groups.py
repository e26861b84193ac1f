"""Responses of the page about consumer groups. Pure."""

from dataclasses import asdict
from typing import Any, NamedTuple

from strait.planning.consumer_groups import MEANINGS, GroupStatus, OffsetState
from strait.planning.status.words import STATES, word
from strait.state.group_sync_records import GroupSyncReport
from strait_airflow.page.views.answers import Data, looked, some
from strait_airflow.page.views.links import is_late
from strait_airflow.page.watches.polled import Seen

_URGENCY = {state: number for number, state in enumerate(OffsetState)}


class Sync(NamedTuple):
    """The continuous synchronization of a link's groups by its application.

    Attributes:
        wanted: whether the link's plan has it; None: unknown.
        report: the last one; None: there is none.
        now_ms: ms since 1970.
    """

    wanted: bool | None
    report: GroupSyncReport | None
    now_ms: int

    @property
    def late(self) -> bool:
        """Whether the last report is older than three intervals, so that it no longer describes the groups."""
        return self.report is not None and is_late(self.report, self.now_ms)

    def as_data(self) -> Data:
        if self.report is None:
            return {"wanted": self.wanted, "report": None}
        age = max(0, self.now_ms - self.report.at_ms) / 1000
        shown = self.report.model_dump(mode="json", exclude={"out_of_sync"})
        return {"wanted": self.wanted, "report": shown, "age_seconds": age, "late": self.late}


def groups_page(
    seen: Seen[tuple[GroupStatus, ...]] | None, sync: Sync, *, search: str, state: str, offset: int, limit: int
) -> Data:
    """Return one page of a link's consumer groups.

    Selected groups come first; of these, the ones that would not continue exactly at their current position.

    Args:
        search: part of the group's name, in any letter case.
        state: only groups with a partition in this state; "" any.
    """
    found = () if seen is None else seen.found
    states = sorted({one for group in found for one, _ in group.states}, key=_URGENCY.__getitem__)
    wanted = [
        group
        for group in found
        if search.casefold() in group.group.casefold() and state in ("", *(one for one, _ in group.states))
    ]
    wanted.sort(key=_by_urgency)
    page = some(wanted, offset, limit)
    return looked(seen) | {
        "at_ms": None if seen is None else seen.at_ms,
        "sync": sync.as_data(),
        "total": len(wanted),
        "of": len(found),
        "states": states,
        "words": {state: word(state) for state in states},
        "rows": [_row(group, sync) for group in page],
    }


def group_details(
    seen: Seen[tuple[GroupStatus, ...]] | None, sync: Sync, name: str, *, offset: int, limit: int
) -> Data | None:
    """Return a group with one page of its partitions, most urgent first; None: there is no group of this name.

    If the groups are unknown, the result has only `looking` and `error`.
    """
    if seen is None or (seen.error and not seen.found):
        return looked(seen)
    group = next((one for one in seen.found if one.group == name), None)
    if group is None:
        return None
    offsets = sorted(group.offsets, key=lambda one: (_URGENCY[one.state], one.topic, one.partition))
    rows = [
        asdict(one) | {"meaning": MEANINGS[one.state], "badge": STATES[one.state].as_data()}
        for one in some(offsets, offset, limit)
    ]
    known = looked(seen) | {"at_ms": seen.at_ms}
    return known | _row(group, sync) | {"total": len(offsets), "rows": rows}


def _by_urgency(group: GroupStatus) -> tuple[Any, ...]:
    urgent = min((_URGENCY[state] for state, _ in group.states), default=0)
    return not group.selected, group.synced, urgent, -(group.rereads or 0), group.group


def _synced_at_ms(group: GroupStatus, sync: Sync) -> int | None:
    """Return when the group was last reported in sync, in ms since 1970.

    None: it is out of sync or not selected, or the report is missing, late, has an error or does not list every group that
    is out of sync.
    """
    report = sync.report
    if report is None or sync.late or report.trouble or not group.selected:
        return None
    all_told = report.groups - report.in_sync == len(report.out_of_sync)
    return report.at_ms if all_told and group.group not in {one.group for one in report.out_of_sync} else None


def _row(group: GroupStatus, sync: Sync) -> Data:
    synced_at_ms = _synced_at_ms(group, sync)
    synced = group.synced or synced_at_ms is not None
    state = "not_selected" if not group.selected else "in_sync" if synced else "out_of_sync"
    return {
        "badge": STATES[state].as_data(),
        "group": group.group,
        "type": group.source.kind,
        "source_state": group.source.state,
        "destination_state": group.destination.state,
        "partitions": len(group.offsets),
        "rereads": group.rereads,
        "synced": group.synced,
        "synced_at_ms": synced_at_ms,
        "selected": group.selected,
        "why": "" if group.synced else group.why,
    }
