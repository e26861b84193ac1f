"""A cluster's consumer groups, by own requests: what kind they are, what they have committed, and committing for them.

The admin client takes one group a call; here a request asks for many, at the broker that coordinates them (KIP-699,
KIP-709). Older brokers are asked for one group at a time.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from kafka.protocol.admin.groups import ListGroupsRequest, ListGroupsResponse
from kafka.protocol.consumer.group import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

from strait.errors import ClusterUnavailable
from strait.model import TopicPartition
from strait.net import error_policy
from strait.net.bootstrap import Address, any_broker, broker_at, until_answered
from strait.net.cluster_facts import every_address
from strait.net.handshake import Answer, Connection
from strait.wire import error_codes

_FIND_COORDINATOR = (10, 1, 4)
_LIST_GROUPS = (16, 4, 5)
_OFFSET_FETCH = (9, 5, 9)
_OFFSET_COMMIT = (8, 2, 4)
"""Up to version 4 a commit says how long it is to be kept, and has no leader epoch."""
_MANY_KEYS, _MANY_GROUPS = 4, 8
_COORDINATORS_AT_ONCE = 500
_GROUPS_AT_ONCE = 200  # a reply stays small enough to be read within the time that one request has
_REPLY_BYTES = 64 << 20
_PARTITIONS_AT_ONCE = 1_000  # of all commits under way: the kernel holds them, and their replies
_NO_GENERATION = -1
_PATIENCE_SECONDS = 30.0
_COMMIT_SECONDS = 5.0
_MOVING = frozenset(
    {
        error_codes.COORDINATOR_LOAD_IN_PROGRESS,
        error_codes.COORDINATOR_NOT_AVAILABLE,
        error_codes.NOT_COORDINATOR,
        error_codes.REQUEST_TIMED_OUT,
    }
)


class Group(NamedTuple):
    """As a broker lists it. ``kind``: "classic", "consumer" (KIP-848), "streams" or "share"; brokers before 3.8 list
    classic groups alone, and do not say so. ``state``: Kafka's word, "Empty" without members. ``protocol``: "consumer"
    for consumers, "" for a group that never had a member."""

    kind: str
    state: str
    protocol: str


class Committed(NamedTuple):
    """Offset of the next record to consume, and what the consumer wrote beside it. ``epoch``: leader epoch of the
    record before it, which consumers commit; -1 for none. It is read, never written."""

    offset: int
    metadata: str
    epoch: int = -1


_T = TypeVar("_T")
_Item = TypeVar("_Item")

Offsets = dict[TopicPartition, Committed]
Codes = dict[TopicPartition, int]


class ConsumerGroups:
    """Of one cluster. Keeps a connection to each broker that it has asked, until it is left.

    Every method raises ClusterUnavailable where brokers or coordinators stay away for half a minute, NotAuthorized
    where the login is refused, and ProtocolError where a broker does not serve a request. What is refused for one group
    or partition alone is an error code in the answer.
    """

    def __init__(self, properties: Mapping[str, str], cluster: str) -> None:
        self._properties = properties
        self._cluster = cluster
        self._connections: dict[Address, Connection] = {}
        self._open = ExitStack()
        self._listings: dict[Address, tuple[Answer, dict[str, Group]]] = {}
        self._fetched: dict[tuple[str, ...], tuple[Answer, dict[str, Offsets | int]]] = {}  # of the last look alone

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._drop_connections()

    def listed(self) -> dict[str, Group]:
        """Every group that this principal may see."""
        return self._until_settled(self._list)

    def committed(self, groups: Iterable[str]) -> dict[str, Offsets | int]:
        """What each group has committed, or the error code of its refusal: UNSTABLE_OFFSET_COMMIT while a transaction
        that commits offsets is open (KIP-447). No offsets for a group that is unknown. Of groups whose answer is what
        it was at the last call, the same objects."""
        wanted = sorted(set(groups))
        found = self._until_settled(lambda: self._committed(wanted))
        self._fetched = {names: kept for names, kept in self._fetched.items() if found.keys() >= set(names)}
        return found

    def commit(self, wanted: Mapping[str, Offsets], retention_ms: int) -> dict[str, Codes]:
        """Commit for groups without members, and keep it for that long: 0 for each partition that was written.

        The broker refuses the whole group with UNKNOWN_MEMBER_ID while it has a member, so nothing is taken from a
        consumer that is at work. A group that does not exist comes into being, and becomes of any kind with its first
        member, except a share group. What could not be written within a few seconds is given up, with its error code:
        after longer, a group may have moved.
        """
        left, done = dict(wanted), dict[str, Codes]()

        def once() -> None:
            for name, codes in self._commit(dict(left), retention_ms):
                done[name] = codes
                moving = next((code for code in codes.values() if code in _MOVING), 0)
                if not moving:
                    del left[name]
            if left:
                raise ClusterUnavailable(
                    self._cluster, f"committing for group {next(iter(left))}: its coordinator moves"
                )

        try:
            self._until_settled(once, _COMMIT_SECONDS)
        except ClusterUnavailable:
            if not done:
                raise
            done |= {name: dict.fromkeys(wanted[name], error_codes.REQUEST_TIMED_OUT) for name in left.keys() - done}
        return done

    # --- requests -----------------------------------------------------------------------------------------------------

    def _list(self) -> dict[str, Group]:
        found: dict[str, Group] = {}
        for address in every_address(self._properties, self._cluster):
            connection = self._at(address)
            version = connection.version(*_LIST_GROUPS)
            before, listed = self._listings.get(address, (None, {}))
            request = ListGroupsRequest(version=version)
            answer = connection.ask_again(request, ListGroupsResponse, before, _REPLY_BYTES)
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

    def _committed(self, wanted: Sequence[str]) -> dict[str, Offsets | int]:
        found: dict[str, Offsets | int] = {}
        for address, groups, code in self._by_coordinator(wanted):
            if address is None:
                found |= dict.fromkeys(groups, code)
                continue
            connection = self._at(address)
            many = connection.version(*_OFFSET_FETCH) >= _MANY_GROUPS
            for some in _parts(groups, _GROUPS_AT_ONCE if many else 1):
                found |= self._fetch(connection, some)
        return found

    def _fetch(self, connection: Connection, groups: Sequence[str]) -> dict[str, Offsets | int]:
        version = connection.version(*_OFFSET_FETCH)
        if version >= _MANY_GROUPS:
            asked: dict[str, Any] = {
                "groups": [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None) for name in groups]
            }
        else:
            asked = {"group_id": groups[0], "topics": None}
        request = OffsetFetchRequest(version=version, require_stable=True, **asked)
        before, fetched = self._fetched.get(tuple(groups), (None, {}))
        answer = connection.ask_again(request, OffsetFetchResponse, before, _REPLY_BYTES)
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
            self._settled(code, f"reading the offsets of group {name}")
            found[name] = code or _offsets(group)
        return found

    def _commit(self, wanted: Mapping[str, Offsets], retention_ms: int) -> Iterator[tuple[str, Codes]]:
        """Each group once it is done."""
        for address, groups, code in self._by_coordinator(sorted(wanted)):
            if address is None:
                yield from ((name, dict.fromkeys(wanted[name], code)) for name in groups)
                continue
            connection = self._at(address)
            version = connection.version(*_OFFSET_COMMIT)
            for together in _together(groups, wanted):
                requests = [_commit_request(version, name, part, retention_ms) for name, part in together]
                codes: dict[str, Codes] = defaultdict(dict)
                replies = connection.ask_each(requests, OffsetCommitResponse)
                for (name, part), reply in zip(together, replies, strict=True):
                    codes[name] |= dict.fromkeys(part, error_policy.NOT_ANSWERED) | _codes(reply)
                yield from codes.items()

    def _by_coordinator(self, groups: Sequence[str]) -> "list[tuple[Address | None, list[str], int]]":
        """(coordinator, its groups, 0), and (None, groups, error code) for those that may not be asked about."""
        found: dict[tuple[Address | None, int], list[str]] = defaultdict(list)
        if not groups:
            return []
        with any_broker(self._properties, self._cluster) as connection:
            version = connection.version(*_FIND_COORDINATOR)
            for some in _parts(groups, _COORDINATORS_AT_ONCE if version >= _MANY_KEYS else 1):
                keys: dict[str, Any] = {"coordinator_keys": list(some)} if version >= _MANY_KEYS else {"key": some[0]}
                reply: Any = connection.ask(
                    FindCoordinatorRequest(version=version, key_type=0, **keys), FindCoordinatorResponse
                )
                told = {item.key: item for item in reply.coordinators} if version >= _MANY_KEYS else {some[0]: reply}
                for name in some:
                    code = int(told[name].error_code)
                    self._settled(code, f"finding the coordinator of group {name}")
                    address = None if code else (str(told[name].host), int(told[name].port))
                    found[address, code].append(name)
        return [(address, names, code) for (address, code), names in found.items()]

    # --- connections --------------------------------------------------------------------------------------------------

    def _at(self, address: Address) -> Connection:
        if address not in self._connections:
            broker = broker_at(self._properties, self._cluster, address)
            self._connections[address] = self._open.enter_context(broker)
        return self._connections[address]

    def _until_settled(self, ask: Callable[[], _T], seconds: float = _PATIENCE_SECONDS) -> _T:
        def once() -> _T:
            try:
                return ask()
            except ClusterUnavailable:
                self._drop_connections()
                raise

        return until_answered(once, seconds)

    def _settled(self, code: int, doing: str) -> None:
        if code in _MOVING:
            raise ClusterUnavailable(self._cluster, f"{doing}: {error_policy.name(code)}")

    def _drop_connections(self) -> None:
        self._connections.clear()
        self._open.close()


def _together(groups: Sequence[str], wanted: Mapping[str, Offsets]) -> Iterator[list[tuple[str, Offsets]]]:
    """Commits that go out at once: whole groups, those of a large one in parts."""
    some: list[tuple[str, Offsets]] = []
    partitions = 0
    for name in groups:
        offsets = wanted[name]
        if some and partitions + len(offsets) > _PARTITIONS_AT_ONCE:
            yield some
            some, partitions = [], 0
        for part in _parts(sorted(offsets), _PARTITIONS_AT_ONCE):
            some.append((name, {place: offsets[place] for place in part}))
        partitions += len(offsets)
    if some:
        yield some


def _offsets(group: Any) -> Offsets | int:
    found = {}
    for topic in group.topics:
        for item in topic.partitions:
            if item.error_code:
                return int(item.error_code)
            if item.committed_offset >= 0:
                place = TopicPartition(topic.name, item.partition_index)
                found[place] = Committed(item.committed_offset, item.metadata or "", item.committed_leader_epoch)
    return found


def _codes(reply: Any) -> Codes:
    return {
        TopicPartition(topic.name, item.partition_index): int(item.error_code)
        for topic in reply.topics
        for item in topic.partitions
    }


def _commit_request(version: int, group: str, offsets: Offsets, retention_ms: int) -> OffsetCommitRequest:
    """By nobody who is a member."""
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
        generation_id_or_member_epoch=_NO_GENERATION,
        member_id="",
        group_instance_id=None,
        retention_time_ms=retention_ms,
        topics=[topic_class(name=topic, partitions=partitions) for topic, partitions in by_topic.items()],
    )


def _parts(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    return (items[at : at + size] for at in range(0, len(items), size))
