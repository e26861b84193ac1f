"""The offsets to commit for a group on the destination, and the meaning of the responses. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from strait.config.route_names import topic_of
from strait.model import TopicPartition
from strait.net import consumer_groups as net
from strait.net import error_policy
from strait.planning.consumer_groups import GroupStatus, OffsetState
from strait.state.translation import Fit, Translation
from strait.wire import error_codes

MARK = "strait+1"
"""Metadata of the link's commits if the source's consumer wrote none, to distinguish them from other clients' commits.
It is Base64 of an unknown version: Kafka Streams decodes this field."""
_AT_WORK = (error_codes.UNKNOWN_MEMBER_ID, error_codes.NON_EMPTY_GROUP)


def before_pending(found: Translation) -> Translation:
    """Return the translation as inexact, since an open transaction commits a later offset: it may be too early."""
    fit = str(Fit.INEXACT) if found.fit == Fit.EXACT else found.fit
    return replace(found, fit=fit, detail="an open transaction commits a later offset; this is the last one before it")


def in_sync(status: GroupStatus, before: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the offsets that only the link has written, for a group that has done nothing on the destination. For an
    offset that another client has replaced since, return the one from ``before``."""
    rows = status.offsets if not status.moved else ()
    held = {item.target for item in rows if item.state is OffsetState.HELD_OWN}
    return {place: offset for place, offset in before.items() if place in held} | {
        item.target: item.committed for item in rows if item.state is OffsetState.IN_SYNC and item.committed is not None
    }


def of_others(
    present: net.Offsets, ours: Mapping[TopicPartition, int], own: Collection[TopicPartition], *, share: bool
) -> set[TopicPartition]:
    """Return the partitions in which a client that is not a member has committed an offset on the destination.

    A commit without metadata is not the link's. One with metadata may be, and a share group's start has none: of these,
    only an earlier offset than was written (``ours``) shows that a client moved it back.
    """

    def other(place: TopicPartition, item: net.Committed) -> bool:
        if place in own or item.metadata == MARK:
            return False
        return (not item.metadata and not share) or item.offset < ours.get(place, item.offset)

    return {place for place, item in present.items() if other(place, item)}


def commits_of(status: GroupStatus, told: net.Offsets | int) -> net.Offsets:
    """Return the offsets to commit, with the consumer's metadata: Kafka Streams keeps its time there."""
    assert not isinstance(told, int)
    return {
        item.target: net.Committed(
            item.to_offset, told[TopicPartition(topic_of(item.topic), item.partition)].metadata or MARK
        )
        for item in status.offsets
        if item.to_write and item.to_offset is not None
    }


def with_mark_alone(wanted: net.Offsets, codes: Mapping[TopicPartition, int]) -> net.Offsets:
    """Return the offsets whose metadata is too large for the destination, without it: an offset is worth more."""
    return {
        place: item._replace(metadata=MARK)
        for place, item in wanted.items()
        if codes.get(place) == error_codes.OFFSET_METADATA_TOO_LARGE and item.metadata != MARK
    }


def refusals(codes: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[OffsetState, str]]:
    """Return the state of each offset that the destination rejected, and the error's name."""
    return {
        place: (
            OffsetState.HELD_ACTIVE if code in _AT_WORK else OffsetState.REFUSED,
            error_policy.name(code),
        )
        for place, code in codes.items()
        if code
    }
