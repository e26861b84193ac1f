"""Translation of a consumer group's committed offsets to the destination, partition by partition. Pure.

An offset is written only while the group has no members on the destination, and never replaces a later offset that was
committed there. A group that has moved commits its own offsets, and may have been reset there on purpose: once it had a
member on the destination, or is further ahead there, none of its offsets is written unless that is requested. An offset
that a client committed there without being a member, such as an operator's reset, is not replaced either. Only an
offset that the link itself is known to have written last follows the source backward, for a group that has done nothing
on the destination. An offset beyond the replicated records is clamped to their end, and advances with them. If other
producers write to the destination topic, a source offset does not determine which of their records were consumed, so it
is not written.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from strait.config.topic_names import STATE_PREFIX
from strait.model import TopicPartition
from strait.planning.status.words import word
from strait.state.translation import Fit, Translation

SHARE = "share"
SHARE_START = "share group's start only"
SHARE_DETAIL = f"{SHARE_START}: records after it are delivered again after a move, acknowledged or not"
DESCRIBABLE = frozenset({"", "classic", "consumer"})
"""Types of groups whose members the admin client can list. Brokers before 3.8 name no type, and have only classic ones."""
_CLASSIC = ("", "classic")
_MOVABLE_PROTOCOLS = frozenset({"", "consumer", "streams"})  # not those of Connect workers or schema registries
_NOTHING: Mapping[TopicPartition, int] = {}
_WITHOUT_MEMBERS = frozenset({"", "empty", "dead"})


class OffsetState(StrEnum):
    """State of a group's offset of one partition on the destination, most urgent first."""

    REFUSED = "refused"
    UNKNOWN = "unknown"
    HELD_SHARED = "held_shared"
    HELD_ACTIVE = "held_active"
    HELD_MOVED = "held_moved"
    HELD_OWN = "held_own"
    DESTINATION_AHEAD = "destination_ahead"
    NOT_REPLICATED = "not_replicated"
    BEHIND = "behind"
    REWOUND = "rewound"
    AHEAD_OF_COPY = "ahead_of_copy"
    IN_SYNC = "in_sync"


_CERTAIN = frozenset({Fit.EXACT, Fit.OVERLAP})
_AT_REST = frozenset(
    {
        OffsetState.HELD_SHARED,
        OffsetState.HELD_ACTIVE,
        OffsetState.HELD_MOVED,
        OffsetState.HELD_OWN,
        OffsetState.DESTINATION_AHEAD,
    }
)
"""Regardless of replication progress, an offset stays in these states as long as neither side commits."""
_SAME = {
    OffsetState.AHEAD_OF_COPY: Fit.AHEAD,
    OffsetState.NOT_REPLICATED: Fit.NOT_REPLICATED,
    OffsetState.UNKNOWN: Fit.UNKNOWN,
}
"""States that already include the accuracy of the translation."""
MEANINGS = {
    OffsetState.REFUSED: "the destination refused the offset",
    OffsetState.UNKNOWN: "the offset cannot be translated now",
    OffsetState.HELD_SHARED: "other producers write to the destination topic, and the two links of a two-way link do not "
    "tell which of their records the group has consumed, so nothing is written",
    OffsetState.HELD_ACTIVE: "the group has members on the destination, so nothing is written",
    OffsetState.HELD_MOVED: "the group has consumed on the destination, so nothing is written without --include-moved",
    OffsetState.HELD_OWN: "an operator or a client that is no member has committed another offset on the destination, so "
    "nothing is written; --sync --take-over replaces it",
    OffsetState.DESTINATION_AHEAD: "the destination has a later offset, which is never taken back",
    OffsetState.NOT_REPLICATED: "nothing of the partition has been replicated, so the offset has no counterpart",
    OffsetState.BEHIND: "the destination has an earlier offset or none",
    OffsetState.REWOUND: "the group went back on the source, and the offset that was written for it follows",
    OffsetState.AHEAD_OF_COPY: "the group is ahead of what is known to be replicated, and would continue where that "
    "ends",
    OffsetState.IN_SYNC: "the destination has the translated offset",
}


class GroupOnCluster(NamedTuple):
    """A group on one cluster: its type and state in Kafka's terms; "" if the cluster has no such group."""

    kind: str = ""
    state: str = ""
    protocol: str = ""

    @property
    def active(self) -> bool:
        """Whether it has members, or is about to."""
        return self.state.lower() not in _WITHOUT_MEMBERS

    @property
    def had_members(self) -> bool:
        """Whether it has had members, rather than only offsets that were committed for it. Unknown, hence false, for a
        share group."""
        return self.kind != SHARE and (self.kind not in _CLASSIC or self.protocol != "")


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """One partition of a group.

    Attributes:
        offset: committed on the source. ``to_offset``: its translation, None for none. ``fit``: how exact the
            translation is.
        committed: on the destination, before anything is written; None: nothing.
        rereads: offsets that the group would consume a second time if it moved now; None: unknown, or
            ``auto.offset.reset`` determines its start. ``overlap``: consumed records that come after ``to_offset``.
    """

    topic: str
    partition: int
    offset: int
    to_topic: str
    to_offset: int | None
    fit: str
    committed: int | None
    state: OffsetState
    rereads: int | None
    detail: str = ""
    overlap: int = 0

    @property
    def target(self) -> TopicPartition:
        return TopicPartition(self.to_topic, self.partition)

    @property
    def to_write(self) -> bool:
        """Whether its translation is to be committed on the destination."""
        if self.state is OffsetState.AHEAD_OF_COPY:
            return self.committed != self.to_offset
        return self.state in (OffsetState.BEHIND, OffsetState.REWOUND)


@dataclass(frozen=True, slots=True)
class GroupStatus:
    """One group of the source, with its offsets in a link's topics.

    Attributes:
        refusal: why its offsets cannot be read.
        selected: whether the link's `consumer_groups` select it.
        committed: number of offsets that were just committed on the destination.
        moved: whether it had members on the destination, or has committed an offset there itself.
        outside: source topics that the link does not replicate, in which it has committed offsets as well.
        left_out: why it is not moved although the link selects it; empty: it is.
    """

    group: str
    source: GroupOnCluster
    destination: GroupOnCluster
    offsets: tuple[GroupOffset, ...] = ()
    refusal: str = ""
    selected: bool = True
    committed: int = 0
    moved: bool = False
    outside: tuple[str, ...] = ()
    left_out: str = ""

    @property
    def note(self) -> str:
        """Why the group as a whole is not synchronized; "" if it is."""
        if reserved(self.group):
            return f"names that begin with {STATE_PREFIX} are reserved, so it is not synchronized"
        if not self.selected:
            return self.left_out or "the link's consumer_groups do not select it"
        if self.destination.kind and (self.source.kind == SHARE) != (self.destination.kind == SHARE):
            what = "a share group" if self.destination.kind == SHARE else "another group, not a share group,"
            return f"the destination has {what} of this name"
        return self.refusal or ("" if self.offsets else "has committed no offset for the link's topics")

    @property
    def states(self) -> list[tuple[OffsetState, int]]:
        """Number of partitions in each state, most urgent state first."""
        counted = Counter(item.state for item in self.offsets)
        return [(state, counted[state]) for state in OffsetState if state in counted]

    @property
    def why(self) -> str:
        """Short reason why it would not continue exactly at its position."""
        if self.note:
            return self.note
        told = {_SAME.get(item.state) for item in self.offsets}
        fits = sorted({item.fit for item in self.offsets if item.fit != Fit.EXACT} - told)
        refusals = sorted({item.detail for item in self.offsets if item.state is OffsetState.REFUSED and item.detail})
        states = ", ".join(f"{count} {word(state)}" for state, count in self.states)
        states += f" ({', '.join(refusals)})" if refusals else ""
        rereads = f"{self.rereads:,} re-reads" if self.rereads else ""
        return "; ".join(filter(None, (states, ", ".join(map(plain, fits)), rereads)))

    @property
    def rereads(self) -> int | None:
        """Sum over all partitions that have a counterpart; None: unknown for one of them."""
        if self.note:
            return None
        known = [item.rereads for item in self.offsets if item.to_offset is not None]
        return None if None in known else sum(each or 0 for each in known)

    @property
    def synced(self) -> bool:
        """Whether it would continue exactly at its position; a share group at its start offset."""
        return not self.note and all(
            item.state is OffsetState.IN_SYNC and item.fit == Fit.EXACT for item in self.offsets
        )

    @property
    def at_rest(self) -> bool:
        """Whether another check returns the same, as long as the group is unchanged and commits nothing on either
        side."""
        return not self.refusal and all(
            item.state in _AT_REST or (item.state is OffsetState.IN_SYNC and item.fit in _CERTAIN)
            for item in self.offsets
        )

    @property
    def refused(self) -> bool:
        """Whether a cluster rejected a read or a write of an offset."""
        return bool(self.refusal) or any(item.state is OffsetState.REFUSED for item in self.offsets)

    def as_data(self) -> dict[str, Any]:
        """Return the status, machine-readable."""
        return {
            "group": self.group,
            "source": self.source._asdict(),
            "destination": self.destination._asdict(),
            "states": {str(state): count for state, count in self.states},
            "rereads": self.rereads,
            "synced": self.synced,
            "note": self.note,
            "outside": list(self.outside),
            "offsets": [asdict(item) for item in self.offsets],
        }


def plain(fit: str) -> str:
    """Return the accuracy of a translation as operators see it."""
    return fit.replace("_", " ")


def can_move(name: str, group: GroupOnCluster) -> bool:
    """Return whether it is a group of consumers, and not one that Strait has created for a test."""
    movable = group.kind == SHARE or group.protocol in _MOVABLE_PROTOCOLS
    return movable and not reserved(name)


def reserved(name: str) -> bool:
    """Return whether the group has a name of those that are reserved for Strait."""
    return name.startswith(STATE_PREFIX)


def status_of(
    group: str,
    source: GroupOnCluster,
    destination: GroupOnCluster,
    translations: Iterable[Translation],
    there: Mapping[TopicPartition, int],
    *,
    own: Collection[TopicPartition] = (),
    ours: Mapping[TopicPartition, int] = _NOTHING,
    others: Collection[TopicPartition] = (),
    include_moved: bool = False,
    take_over: bool = False,
) -> GroupStatus:
    """Determine the status of one group.

    Args:
        translations: of its offsets on the source, in the link's topics.
        there: its offsets on the destination, by the destination's names; ``own``: those that it committed itself;
            ``ours``: those that the link is known to have written, or to have found in sync; ``others``: those that a
            client committed without being a member.
        include_moved: also write for a group that has moved, forward only.
        take_over: replace offsets of others, and later ones, of a group that has not moved.
    """
    rows, moved = [], destination.had_members or bool(own)
    for found in sorted(translations, key=lambda found: (found.topic, found.partition)):
        place = TopicPartition(found.to_topic, found.partition)
        present = there.get(place)
        back = (present is not None and ours.get(place) == present and place not in others) or take_over
        row = _row(found, present, active=destination.active, back=back and not moved and source.kind != SHARE)
        if place in others and not moved:
            row = _of_others(row, active=destination.active, take_over=take_over)
        rows.append(row)
    # An offset beyond an exact translation is the group's own. An inexact translation may just be too early.
    further = any(row.state is OffsetState.DESTINATION_AHEAD and row.fit in _CERTAIN for row in rows)
    if (further or moved) and not include_moved:
        rows = [replace(row, state=OffsetState.HELD_MOVED) if row.to_write else row for row in rows]
    if source.kind == SHARE:
        rows = [replace(row, rereads=None, detail="; ".join(filter(None, (row.detail, SHARE_DETAIL)))) for row in rows]
    return GroupStatus(group, source, destination, tuple(rows), moved=moved)


def written(status: GroupStatus, refused: Mapping[TopicPartition, tuple[OffsetState, str]]) -> GroupStatus:
    """Return the status after the group's offsets were written, except those that were rejected; of a group that is not
    synchronized none was."""

    def after(item: GroupOffset) -> GroupOffset:
        if not item.to_write:
            return item
        if item.target in refused:
            state, detail = refused[item.target]
            return replace(item, state=state, detail=detail)
        state = item.state if item.state is OffsetState.AHEAD_OF_COPY else OffsetState.IN_SYNC
        rereads = None if status.source.kind == SHARE else _rereads(item, item.to_offset)
        return replace(item, state=state, committed=item.to_offset, rereads=rereads)

    if status.note:
        return status
    done = sum(item.to_write and item.target not in refused for item in status.offsets)
    return replace(status, offsets=tuple(map(after, status.offsets)), committed=done)


def with_refused(status: GroupStatus, refused: Mapping[TopicPartition, str]) -> GroupStatus:
    """Return the status with the offsets that the destination would reject."""
    offsets = tuple(
        replace(item, state=OffsetState.REFUSED, detail=refused[item.target]) if item.target in refused else item
        for item in status.offsets
    )
    return replace(status, offsets=offsets)


def _row(found: Translation, present: int | None, *, active: bool, back: bool) -> GroupOffset:
    row = GroupOffset(
        *(found.topic, found.partition, found.offset, found.to_topic, found.to_offset, found.fit, present),
        *(_state(found, present, active=active, back=back), None, found.detail, found.rereads),
    )
    return replace(row, rereads=_rereads(row, present))


def _of_others(row: GroupOffset, *, active: bool, take_over: bool) -> GroupOffset:
    """Return the row for an offset that a client committed without being a member. If it is taken over, one that is in
    sync is written, too, so that it follows from then on."""
    if not take_over:
        return replace(row, state=OffsetState.HELD_OWN) if row.to_write else row
    taken = row.state is OffsetState.IN_SYNC and not active
    return replace(row, state=OffsetState.BEHIND) if taken else row


def _rereads(row: GroupOffset, present: int | None) -> int | None:
    if present is None or row.to_offset is None or row.fit not in _CERTAIN:
        return None
    if present > row.to_offset and row.overlap:
        return None  # unknown: how many of these come after ``present``
    return max(0, row.to_offset - present) + row.overlap


def _state(found: Translation, present: int | None, *, active: bool, back: bool) -> OffsetState:
    if found.shared and found.fit != Fit.NOT_REPLICATED:
        return OffsetState.HELD_SHARED
    if found.to_offset is None:
        return OffsetState.UNKNOWN if found.fit == Fit.UNKNOWN else OffsetState.NOT_REPLICATED
    if present is not None and present > found.to_offset:
        return OffsetState.REWOUND if back and not active and found.fit == Fit.EXACT else OffsetState.DESTINATION_AHEAD
    if active and present != found.to_offset:
        return OffsetState.HELD_ACTIVE
    if found.fit == Fit.AHEAD:
        return OffsetState.AHEAD_OF_COPY
    return OffsetState.IN_SYNC if present == found.to_offset else OffsetState.BEHIND
