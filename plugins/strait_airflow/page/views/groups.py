"""What the page answers about consumer groups. Pure."""

from dataclasses import asdict
from typing import Any

from strait.planning.consumer_groups import MEANINGS, GroupStatus, OffsetState
from strait.state.group_sync_records import GroupSyncReport
from strait_airflow.page.views.answers import Data, looked, some
from strait_airflow.page.watches.groups import GroupsSeen

_URGENCY = {state: number for number, state in enumerate(OffsetState)}


def groups_page(
    seen: GroupsSeen | None, report: GroupSyncReport | None, *, search: str, state: str, offset: int, limit: int
) -> Data:
    """Some of a link's groups: those first that would not continue exactly where they are.

    Args:
        report: of the link's continuous synchronization; None: it does not synchronize any.
        search: part of the group's name, in any case.
        state: only groups with a partition in it; "" any.
    """
    found = () if seen is None else seen.groups
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
        "sync": None if report is None else report.model_dump(mode="json", exclude={"out_of_sync"}),
        "total": len(wanted),
        "of": len(found),
        "states": states,
        "rows": [_row(group, report) for group in page],
    }


def group_details(
    seen: GroupsSeen | None, report: GroupSyncReport | None, name: str, *, offset: int, limit: int
) -> Data | None:
    """A group with some of its partitions, the most urgent first; None: there is none of this name.

    Where the groups are not known, it is `looking` or has an `error`, and nothing else.
    """
    if seen is None or seen.error:
        return looked(seen)
    group = next((one for one in seen.groups if one.group == name), None)
    if group is None:
        return None
    offsets = sorted(group.offsets, key=lambda one: (_URGENCY[one.state], one.topic, one.partition))
    rows = [asdict(one) | {"meaning": MEANINGS[one.state]} for one in some(offsets, offset, limit)]
    known = looked(seen) | {"at_ms": seen.at_ms}
    return known | _row(group, report) | {"total": len(offsets), "rows": rows}


def _by_urgency(group: GroupStatus) -> tuple[Any, ...]:
    urgent = min((_URGENCY[state] for state, _ in group.states), default=0)
    return not group.selected, group.synced, urgent, -(group.rereads or 0), group.group


def _synced_at_ms(group: GroupStatus, report: GroupSyncReport | None) -> int | None:
    """When the link last found it in sync; None: not at the last look, or that is not told of every group."""
    if report is None or report.trouble or not group.selected:
        return None
    all_told = report.groups - report.in_sync == len(report.out_of_sync)
    return report.at_ms if all_told and group.group not in {one.group for one in report.out_of_sync} else None


def _row(group: GroupStatus, report: GroupSyncReport | None) -> Data:
    return {
        "group": group.group,
        "type": group.source.kind,
        "source_state": group.source.state,
        "destination_state": group.destination.state,
        "partitions": len(group.offsets),
        "rereads": group.rereads,
        "synced": group.synced,
        "synced_at_ms": _synced_at_ms(group, report),
        "selected": group.selected,
        "why": "" if group.synced else group.why,
    }
