"""Results of a failover's checks of consumer groups, derived from observations. Pure."""

from collections.abc import Collection, Mapping, Sequence

from strait.config.topic_names import STATE_PREFIX
from strait.planning.consumer_groups import GroupStatus, OffsetState, reserved
from strait.planning.failover import Check, Verdict
from strait.state.group_sync_records import GroupSyncReport
from strait.state.translation import Fit
from strait.text import duration, listed, plural

ALL_GROUPS = "*"
"""As a name of a group to accept: any group."""
_NOTHING: Mapping[str, str] = {}
_SOON = frozenset({OffsetState.BEHIND, OffsetState.REWOUND, OffsetState.AHEAD_OF_COPY, OffsetState.IN_SYNC})
"""Offsets in these states will be exact once the link is drained and they are committed, if their translation is
exact."""


def groups(statuses: Sequence[GroupStatus], *, accept: Collection[str], soon: bool = False) -> Check:
    """Check that every group continues exactly at its position, or later if it moved to the destination before.

    Args:
        accept: names of groups that may continue elsewhere; `ALL_GROUPS`: any.
        soon: also accept groups that would continue exactly once all is replicated and their offsets are committed.
    """
    chosen = [status for status in statuses if status.selected]
    ahead = [status for status in chosen if not status.synced and moved(status)]
    others = [status for status in chosen if not (status.synced or moved(status) or (soon and _will(status)))]
    accepted = [status for status in others if ALL_GROUPS in accept or status.group in accept]
    refused = [status for status in others if status not in accepted]
    exact = len(chosen) - len(ahead) - len(others)
    one, several = "group continues exactly where it stopped", "groups continue exactly where they stopped"
    parts = [f"{exact} of {plural(len(chosen), one, several)}"]
    if ahead:
        parts.append(f"{len(ahead)} have moved before: {listed([_where_it_is(status) for status in ahead])}")
    parts += (left := _not_moved(statuses))
    if accepted:
        parts.append(f"not exactly, as accepted: {listed([f'{status.group} ({status.why})' for status in accepted])}")
    if refused:
        parts.append(f"not exactly: {listed([f'{status.group} ({status.why})' for status in refused])}")
        parts += _skipping(refused)
        if any(item.state is OffsetState.HELD_MOVED for status in refused for item in status.offsets):
            parts.append("--include-moved commits for those that have consumed on the destination before")
        if any(item.state is OffsetState.HELD_OWN for status in refused for item in status.offsets):
            parts.append("strait groups --sync --take-over replaces offsets that others committed on the destination")
        parts.append(f"--accept-inexact {refused[0].group} goes on all the same")
        return Check(Verdict.FAILED, "; ".join(parts))
    return Check(Verdict.WARNING if ahead or accepted or left else Verdict.DONE, "; ".join(parts))


def _not_moved(statuses: Sequence[GroupStatus]) -> list[str]:
    """Describe the offsets that are not moved: those in topics that the link does not replicate, and those of groups
    that a wave does not include or whose names are reserved for Strait."""
    outside = [status for status in statuses if status.selected and status.outside]
    names = [status.group for status in statuses if reserved(status.group)]
    staying = [status.group for status in statuses if status.left_out]
    parts = []
    if staying:
        parts.append(f"not moved, though they have offsets in these topics: {listed(staying)}")
    if outside:
        shown = [f"{status.group} ({listed(status.outside)})" for status in outside]
        parts.append(
            f"not moved: offsets of {plural(len(outside), 'group')} in topics that the link does not copy: {listed(shown)}"
        )
    if names:
        begin = plural(len(names), "group whose name begins", "groups whose names begin")
        parts.append(f"not moved: {begin} with {STATE_PREFIX}: {listed(names)}")
    return parts


def _skipping(statuses: Sequence[GroupStatus]) -> list[str]:
    """Describe the groups that would skip records, since a later offset was committed on the destination than on the
    source."""
    ahead = [
        f"{status.group} in {item.target} at {item.committed:,} instead of {item.to_offset:,}"
        for status in statuses
        for item in status.offsets
        if item.state is OffsetState.DESTINATION_AHEAD and item.to_offset is not None and item.committed is not None
    ]
    if not ahead:
        return []
    return [
        f"would skip records: {listed(ahead)}, where they are on the source: kafka-consumer-groups.sh --reset-offsets on the "
        "destination takes them back"
    ]


def _where_it_is(status: GroupStatus) -> str:
    """Return the group with the number of records that it reads again after others, or the group itself on the other
    side, have consumed them."""
    if status.rereads is None:
        return f"{status.group} (may read records twice; how many is not known)"
    return f"{status.group} (reads {plural(status.rereads, 'record')} twice)" if status.rereads else status.group


def kept_groups(report: GroupSyncReport | None, now_ms: int, unread: Mapping[str, str] = _NOTHING) -> Check:
    """Report the last known state of consumer groups on the destination, for a source that can no longer be queried.

    Args:
        unread: groups whose offsets on the destination cannot be read -> name of the error.
    """
    if report is None:
        text = "the link does not synchronize consumer groups, or has not for a day"
    else:
        age = duration(max(0, now_ms - report.at_ms) / 1000)
        text = f"{report.in_sync:,} of {plural(report.groups, 'group was', 'groups were')} in sync {age} ago, at the last look at the source"
        text += "; what they consumed after it, and records beyond the copy, they consume again"
    if unread:
        shown = listed([f"{group} ({unread[group]})" for group in sorted(unread)])
        text += f"; offsets of {plural(len(unread), 'group')} on the destination cannot be read: {shown}"
    return Check(Verdict.WARNING, text)


def moved(status: GroupStatus) -> bool:
    """Return whether the group continued on the destination before, and is further ahead there."""
    further = [item.state is OffsetState.DESTINATION_AHEAD for item in status.offsets]
    others = all(item.state is OffsetState.IN_SYNC or it for item, it in zip(status.offsets, further, strict=True))
    return status.moved and not status.note and any(further) and others


def _will(status: GroupStatus) -> bool:
    fits = (Fit.EXACT, Fit.AHEAD)
    return not status.note and all(item.state in _SOON and item.fit in fits for item in status.offsets)
