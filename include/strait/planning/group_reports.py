"""An application's report on a link's consumer groups, and its form for operators. Pure."""

from collections.abc import Iterable
from heapq import nsmallest

from strait.planning.consumer_groups import GroupStatus, OffsetState
from strait.planning.status.words import STATES
from strait.state.group_sync_records import GroupOutOfSync, GroupSyncReport

_MOST_OUT_OF_SYNC = 20


def most_urgent(out_of_sync: Iterable[GroupStatus]) -> tuple[GroupOutOfSync, ...]:
    """Return the 20 most urgent of the groups that would not continue exactly at their position, most urgent first."""
    urgency = {state: number for number, state in enumerate(OffsetState)}

    def order(status: GroupStatus) -> tuple[int, str]:
        return min((urgency[item.state] for item in status.offsets), default=0), status.group

    chosen = nsmallest(_MOST_OUT_OF_SYNC, out_of_sync, key=order)
    return tuple(GroupOutOfSync(group=status.group, why=status.why) for status in chosen)


def summary(report: GroupSyncReport, now_ms: int) -> str:
    """Return the last check of a link's consumer groups as one line for operators."""
    states = ", ".join(
        f"{count:,} {STATES[state].word if state in STATES else state}" for state, count in report.offsets.items()
    )
    counted = f"{report.in_sync:,} of {report.groups:,} in sync" if report.groups else "none has committed an offset"
    text = f"consumer groups: {counted}"
    text += f"; offsets: {states}" if states else ""
    text += f"; looked {max(0, now_ms - report.at_ms) / 1000:.1f} s ago"
    return f"{text}; now it cannot: {report.trouble}" if report.trouble else text
