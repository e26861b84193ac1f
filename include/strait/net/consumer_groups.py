"""A cluster's consumer groups, by Strait's own requests: their types, their committed offsets, and commits on their
behalf.

The admin client accepts one group per call. Here one request covers many groups, sent to the broker that coordinates
them (KIP-699, KIP-709). Older brokers are queried for one group at a time.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from kafka.protocol.admin.groups import ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer.group import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

from strait.errors import ClusterUnavailable
from strait.model import TopicPartition
from strait.net import error_policy
from strait.net.brokers import Address, every_address
from strait.net.group_coordinators import Codes, Coordinators
from strait.net.handshake import Answer, Connection
from strait.pieces import pieces
from strait.wire.error_codes import UNSTABLE_OFFSET_COMMIT

_LIST_GROUPS = (16, 4, 5)
_OFFSET_FETCH = (9, 5, 9)
_OFFSET_COMMIT = (8, 2, 4)
"""Up to version 4 a commit sets its retention time, and has no leader epoch."""
_MANY_GROUPS = 8
GROUPS_AT_ONCE = 200  # keeps a reply small enough to be read within the timeout of one request
REPLY_BYTES = 64 << 20
_PARTITIONS_AT_ONCE = 1_000  # of all commits in flight: the kernel buffers them, and their replies
_NO_GENERATION = -1
_NOBODY = "strait-looks-at-rights"


class Group(NamedTuple):
    """A group as a broker lists it. ``kind``: "classic", "consumer" (KIP-848), "streams" or "share"; brokers before 3.8
    list only classic groups, without their type. ``state``: Kafka's name for it, "Empty" without members. ``protocol``:
    "consumer" for consumers, "" for a group that never had a member."""

    kind: str
    state: str
    protocol: str


class Committed(NamedTuple):
    """Offset of the next record to consume, and the metadata that the consumer committed with it. ``epoch``: leader
    epoch of the record before it, which consumers commit; -1 for none. Strait reads it and never writes it.
    ``pending``: a transaction that commits a later offset is open."""

    offset: int
    metadata: str
    epoch: int = -1
    pending: bool = False


Offsets = dict[TopicPartition, Committed]


class ConsumerGroups:
    """The consumer groups of one cluster. Keeps a connection to each broker that it has queried, until the context
    exits.

    Every method raises ClusterUnavailable if brokers or coordinators stay unavailable for 30 s (5 s for commits),
    NotAuthorized if the login is rejected, and ProtocolError if a broker does not serve a request. If only one group or
    partition is rejected, the result contains its error code.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str) -> None:
        self.coordinators = Coordinators(properties, cluster)
        self._cluster = cluster
        self._listings: dict[Address, tuple[Answer, dict[str, Group]]] = {}
        self._fetched: dict[tuple[str, ...], tuple[Answer, dict[str, Offsets | int]]] = {}  # of the last call alone

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.coordinators.drop()

    def listed(self) -> dict[str, Group]:
        """Return every group that this principal may see."""
        return self.coordinators.until_settled(self._list)

    def committed(self, groups: Iterable[str], *, last_stable: bool = False) -> dict[str, Offsets | int]:
        """Return each group's committed offsets, or its error code: UNSTABLE_OFFSET_COMMIT while a transaction that
        commits offsets is open (KIP-447). An unknown group has no offsets. Groups whose answer has not changed since
        the last call get the same objects.

        Args:
            last_stable: for partitions with such a transaction, return the offsets committed before it, marked as
                pending.
        """
        wanted = sorted(set(groups))
        found = self.coordinators.until_settled(lambda: self._committed(wanted))
        unstable = [name for name, told in found.items() if not isinstance(told, int) and _has_pending(told)]
        asked = unstable if last_stable else []
        before = self.coordinators.until_settled(lambda: self._committed(asked, stable=False)) if asked else {}
        for name in unstable:
            found[name] = _before_pending(found[name], before[name]) if last_stable else UNSTABLE_OFFSET_COMMIT
        self._fetched = {names: kept for names, kept in self._fetched.items() if found.keys() >= set(names)}
        return found

    def commit(self, wanted: Mapping[str, Offsets], retention_ms: int) -> dict[str, Codes]:
        """Commit for groups without members, with that retention time. Returns error codes: 0 for each partition
        written.

        The broker rejects the whole group with UNKNOWN_MEMBER_ID while it has a member, so an active consumer is not
        affected. A group that does not exist is created, and may become of any type with its first member, except a
        share group. Partitions that could not be written within 5 s are given up, with their error code: after longer,
        a group may have moved.
        """
        return self.coordinators.until_written(wanted, lambda left: self._commit(left, retention_ms))

    def try_commit(self, wanted: Mapping[str, Offsets]) -> dict[str, Codes]:
        """Return the error codes with which a commit would be rejected for missing permissions. Nothing is written: the
        request comes from a member that no group has, and the broker checks permissions first."""
        return self.coordinators.until_written(wanted, lambda left: self._commit(left, 0, as_nobody=True))

    # --- requests -----------------------------------------------------------------------------------------------------

    def _list(self) -> dict[str, Group]:
        found: dict[str, Group] = {}
        for address in every_address(self.coordinators.properties, self._cluster):
            connection = self.coordinators.at(address)
            version = connection.version(*_LIST_GROUPS)
            before, listed = self._listings.get(address, (None, {}))
            request = ListGroupsRequest(version=version)
            answer = connection.ask_again(request, ListGroupsResponse, before, REPLY_BYTES)
            if answer is not before:
                listed = self._groups(answer.reply, version)
                self._listings[address] = answer._replace(reply=None), listed
            found |= listed
        return found

    def _groups(self, reply: Any, version: int) -> dict[str, Group]:
        if reply.error_code:
            raise ClusterUnavailable(self._cluster, f"listing consumer groups: {error_policy.name(reply.error_code)}")
        kinds = (str(group.group_type).lower() if version >= 5 else "classic" for group in reply.groups)
        return {
            str(group.group_id): Group(kind, str(group.group_state), str(group.protocol_type))
            for group, kind in zip(reply.groups, kinds, strict=True)
        }

    def _committed(self, wanted: Sequence[str], *, stable: bool = True) -> dict[str, Offsets | int]:
        found: dict[str, Offsets | int] = {}
        for address, groups, code in self.coordinators.of(wanted):
            if address is None:
                found |= dict.fromkeys(groups, code)
                continue
            connection = self.coordinators.at(address)
            many = connection.version(*_OFFSET_FETCH) >= _MANY_GROUPS
            for some in pieces(groups, GROUPS_AT_ONCE if many else 1):
                found |= self._fetch(connection, some, stable=stable)
        return found

    def _fetch(self, connection: Connection, groups: Sequence[str], *, stable: bool) -> dict[str, Offsets | int]:
        version = connection.version(*_OFFSET_FETCH)
        if version >= _MANY_GROUPS:
            asked: dict[str, Any] = {
                "groups": [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None) for name in groups]
            }
        else:
            asked = {"group_id": groups[0], "topics": None}
        request = OffsetFetchRequest(version=version, require_stable=stable, **asked)
        if not stable:  # may change while the stable answer stays the same
            answer = connection.ask_again(request, OffsetFetchResponse, None, REPLY_BYTES)
            return self._offsets_of(answer.reply, groups, version)
        before, fetched = self._fetched.get(tuple(groups), (None, {}))
        answer = connection.ask_again(request, OffsetFetchResponse, before, REPLY_BYTES)
        if answer is not before:
            fetched = self._offsets_of(answer.reply, groups, version)
            self._fetched[tuple(groups)] = answer._replace(reply=None), fetched
        return fetched

    def _offsets_of(self, reply: Any, groups: Sequence[str], version: int) -> dict[str, Offsets | int]:
        told = {group.group_id: group for group in reply.groups} if version >= _MANY_GROUPS else {groups[0]: reply}
        found: dict[str, Offsets | int] = {}
        for name in groups:
            group = told.get(name)
            code = error_policy.NOT_ANSWERED if group is None else int(group.error_code)
            self.coordinators.settled(code, f"reading the offsets of group {name}")
            found[name] = code or _offsets(group)
        return found

    def _commit(
        self, wanted: Mapping[str, Offsets], retention_ms: int, *, as_nobody: bool = False
    ) -> Iterator[tuple[str, Codes]]:
        """Yield each group, with its error codes, once it is done."""
        for address, groups, code in self.coordinators.of(sorted(wanted)):
            if address is None:
                yield from ((name, dict.fromkeys(wanted[name], code)) for name in groups)
                continue
            connection = self.coordinators.at(address)
            version = connection.version(*_OFFSET_COMMIT)
            for together in _together(groups, wanted):
                requests = [
                    _commit_request(version, name, part, retention_ms, as_nobody=as_nobody) for name, part in together
                ]
                codes: dict[str, Codes] = defaultdict(dict)
                replies = connection.ask_each(requests, OffsetCommitResponse)
                for (name, part), reply in zip(together, replies, strict=True):
                    codes[name] |= dict.fromkeys(part, error_policy.NOT_ANSWERED) | _codes(reply)
                yield from codes.items()


def _together(groups: Sequence[str], wanted: Mapping[str, Offsets]) -> Iterator[list[tuple[str, Offsets]]]:
    """Yield lists of commits to send together: whole groups, a large one in several parts."""
    some: list[tuple[str, Offsets]] = []
    partitions = 0
    for name in groups:
        offsets = wanted[name]
        if some and partitions + len(offsets) > _PARTITIONS_AT_ONCE:
            yield some
            some, partitions = [], 0
        for part in pieces(sorted(offsets), _PARTITIONS_AT_ONCE):
            some.append((name, {place: offsets[place] for place in part}))
        partitions += len(offsets)
    if some:
        yield some


def _offsets(group: Any) -> Offsets | int:
    found = {}
    for topic in group.topics:
        for item in topic.partitions:
            place = TopicPartition(topic.name, item.partition_index)
            if item.error_code == UNSTABLE_OFFSET_COMMIT:
                found[place] = Committed(-1, "", pending=True)
                continue
            if item.error_code:
                return int(item.error_code)
            if item.committed_offset >= 0:
                found[place] = Committed(item.committed_offset, item.metadata or "", item.committed_leader_epoch)
    return found


def _has_pending(told: Offsets) -> bool:
    return any(item.pending for item in told.values())


def _before_pending(told: Offsets | int, before: Offsets | int) -> Offsets | int:
    """Return the stable offsets, and for partitions with a pending commit the offset committed before it; partitions
    without one are omitted."""
    if isinstance(told, int) or isinstance(before, int):
        return told if isinstance(told, int) else before
    known = {
        place: item._replace(pending=True) for place, item in before.items() if place in told and told[place].pending
    }
    return {place: item for place, item in told.items() if not item.pending} | known


def _codes(reply: Any) -> Codes:
    return {
        TopicPartition(topic.name, item.partition_index): int(item.error_code)
        for topic in reply.topics
        for item in topic.partitions
    }


def _commit_request(
    version: int, group: str, offsets: Offsets, retention_ms: int, *, as_nobody: bool
) -> OffsetCommitRequest:
    """Return a commit without a membership, or ``as_nobody`` with a membership that the group does not have."""
    topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for (topic, number), committed in offsets.items():
        by_topic[topic].append(
            topic_class.OffsetCommitRequestPartition(
                partition_index=number,
                committed_offset=committed.offset,
                committed_leader_epoch=-1,
                committed_metadata=committed.metadata,
            )
        )
    return OffsetCommitRequest(
        version=version,
        group_id=group,
        generation_id_or_member_epoch=1 if as_nobody else _NO_GENERATION,
        member_id=_NOBODY if as_nobody else "",
        group_instance_id=None,
        retention_time_ms=retention_ms,
        topics=[topic_class(name=topic, partitions=partitions) for topic, partitions in by_topic.items()],
    )
