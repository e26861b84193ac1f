"""Groups' translated offsets, committed on the destination under other names, read back and deleted: a rehearsal of a
failover that does not touch any group in use."""

from collections.abc import Collection, Sequence

from strait.config.topic_names import STATE_PREFIX
from strait.model import TopicPartition
from strait.net import consumer_groups as net
from strait.net import error_policy
from strait.planning.consumer_groups import SHARE, GroupStatus, with_refused
from strait.state.link_handle import LinkHandle
from strait.wire import error_codes

_RETENTION_MS = 600_000
"""If deleting them is interrupted, the broker deletes them after this time."""

_NO_RIGHT = (error_codes.GROUP_AUTHORIZATION_FAILED, error_codes.TOPIC_AUTHORIZATION_FAILED)


def try_shadow_groups(link: LinkHandle, statuses: Sequence[GroupStatus]) -> tuple[int, list[str]]:
    """Return how many groups were tried, and the offsets that were not committed or not read back as committed. Raises
    ClusterUnavailable, NotAuthorized."""
    wanted = {
        f"{STATE_PREFIX}{link.name}.rehearsal.{status.group}": {
            item.target: net.Committed(item.to_offset, "") for item in status.offsets if item.to_offset is not None
        }
        for status in statuses
        if not status.note and status.source.kind != SHARE
    }
    wanted = {name: offsets for name, offsets in wanted.items() if offsets}
    try:
        with net.ConsumerGroups(*link.destination) as groups:
            codes = groups.commit(wanted, _RETENTION_MS)
            told = groups.committed(wanted)
    finally:
        link.admin("destination").delete_groups_each(list(wanted))
    wrong = []
    for name, offsets in wanted.items():
        kept = told.get(name, error_policy.NOT_ANSWERED)
        for place, item in offsets.items():
            code = codes.get(name, {}).get(place, error_policy.NOT_ANSWERED)
            if code:
                wrong.append(f"{name} in {place}: {error_policy.name(code)}")
            elif isinstance(kept, int) or kept.get(place, net.Committed(-1, "")).offset != item.offset:
                wrong.append(f"{name} in {place}")
    return len(wanted), wrong


def with_refusals(link: LinkHandle, statuses: Sequence[GroupStatus]) -> list[GroupStatus]:
    """Return the statuses, with the offsets that the destination would reject for lack of a permission. Writes nothing.
    Raises ClusterUnavailable, NotAuthorized."""
    wanted = {
        status.group: {
            item.target: net.Committed(item.to_offset, "") for item in status.offsets if item.to_offset is not None
        }
        for status in statuses
        if status.selected and not status.note and status.source.kind != SHARE
    }
    with net.ConsumerGroups(*link.destination) as groups:
        codes = groups.try_commit({name: offsets for name, offsets in wanted.items() if offsets})
    refused = {
        name: {place: error_policy.name(code) for place, code in of_group.items() if code in _NO_RIGHT}
        for name, of_group in codes.items()
    }
    return [with_refused(status, refused.get(status.group, {})) for status in statuses]


def next_places(
    statuses: Sequence[GroupStatus], most: int, *, without: Collection[str] = ()
) -> list[tuple[str, TopicPartition, int, TopicPartition, int]]:
    """Return (group, source partition, its offset, destination partition, its offset) of up to ``most`` offsets that
    translate exactly, each partition once. ``without``: topics to skip."""
    found: dict[TopicPartition, tuple[str, TopicPartition, int, TopicPartition, int]] = {}
    for status in statuses:
        for item in status.offsets if not status.note else ():
            place = TopicPartition(item.topic, item.partition)
            if item.topic in without or place in found or len(found) >= most:
                continue
            if item.to_offset is not None and item.fit == "exact":
                found[place] = status.group, place, item.offset, item.target, item.to_offset
    return list(found.values())
