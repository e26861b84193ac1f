"""What an application reports of a link's consumer groups, and how people read it. Pure."""

from collections.abc import Iterable
from heapq import nsmallest

from strait.planning.consumer_groups import GroupStatus, OffsetState
from strait.state.group_sync_records import GroupOutOfSync, GroupSyncReport

_MOST_OUT_OF_SYNC = 20


def most_urgent(out_of_sync: Iterable[GroupStatus]) -> tuple[GroupOutOfSync, ...]:
    """Of groups that would not continue exactly where they are, as many as a person looks at, those first that need one
    most."""
    urgency = {state: number for number, state in enumerate(OffsetState)}

    def order(status: GroupStatus) -> tuple[int, str]:
        return min((urgency[item.state] for item in status.offsets), default=0), status.group

    chosen = nsmallest(_MOST_OUT_OF_SYNC, out_of_sync, key=order)
    return tuple(GroupOutOfSync(group=status.group, why=status.why) for status in chosen)


def summary(report: GroupSyncReport, now_ms: int) -> str:
    """The last look at a link's consumer groups in a line, for people."""
    states = ", ".join(f"{count:,} {state}" for state, count in report.offsets.items())
    text = f"consumer groups: {report.in_sync:,} of {report.groups:,} in sync"
    text += f"; offsets: {states}" if states else ""
    text += f"; looked {max(0, now_ms - report.at_ms) / 1000:.1f} s ago"
    return f"{text}; now it cannot: {report.trouble}" if report.trouble else text
