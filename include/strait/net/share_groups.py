"""Reading and setting the start offsets of a cluster's share groups (KIP-932). Brokers serve these requests since 4.2.

The start offset is all that a share group exposes: only brokers exchange which records above it were acknowledged.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from strait.errors import ClusterUnavailable
from strait.model import TopicPartition
from strait.net import error_policy
from strait.net.consumer_groups import GROUPS_AT_ONCE, REPLY_BYTES, Committed, Offsets
from strait.net.group_coordinators import Codes, Coordinators
from strait.net.handshake import Answer, Connection
from strait.net.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from strait.pieces import pieces
from strait.wire import error_codes

_DESCRIBE = (77, 1, 1)
_DESCRIBE_OFFSETS = (90, 0, 0)
_ALTER_OFFSETS = (91, 0, 0)
_REQUESTS_AT_ONCE = 50
_PATIENCE_SECONDS = 5.0
_EPOCH_WITHOUT_MEMBERS = 1
"""The epoch of a group once its offsets have been set: this in 4.3, 0 in 4.2. A member that joins and leaves raises it
further."""


class ShareGroups:
    """The share groups of one cluster. Raises as `ConsumerGroups`. If a coordinator does not serve share groups, each
    of its groups has the error code UNSUPPORTED_VERSION."""

    def __init__(self, coordinators: Coordinators) -> None:
        self._coordinators = coordinators
        self._described: dict[str, tuple[Answer, Offsets | int]] = {}  # of the last call alone

    def starts(self, groups: Iterable[str]) -> dict[str, Offsets | int]:
        """Return each group's start offsets, or its error code. Groups whose answer has not changed since the last call
        get the same objects.

        Coordinators keep start offsets in a separate topic. If that topic is unavailable, share groups get
        REQUEST_TIMED_OUT after 5 s, so that other groups do not wait for it.
        """
        wanted = sorted(set(groups))
        try:
            found = self._coordinators.until_settled(lambda: self._starts(wanted), _PATIENCE_SECONDS)
        except ClusterUnavailable:
            return dict.fromkeys(wanted, error_codes.REQUEST_TIMED_OUT)
        self._described = {name: kept for name, kept in self._described.items() if name in found}
        return found

    def with_past(self, groups: Iterable[str]) -> set[str]:
        """Return the groups that have, or have had, members, and those for which this cannot be determined."""
        wanted = sorted(set(groups))
        return self._coordinators.until_settled(lambda: {name for name, own in self._pasts(wanted) if own})

    def alter(self, wanted: Mapping[str, Offsets]) -> dict[str, Codes]:
        """Set start offsets of groups without members. Returns error codes: 0 for each partition written.

        The broker rejects the whole group with NON_EMPTY_GROUP while it has a member, and with GROUP_ID_NOT_FOUND if it
        is of another type. A group that does not exist is created. An offset beyond the log's end is accepted.
        Partitions that could not be written within 5 s are given up, with their error code.
        """
        try:
            return self._coordinators.until_written(wanted, self._alter)
        except ClusterUnavailable:
            return {name: dict.fromkeys(starts, error_codes.REQUEST_TIMED_OUT) for name, starts in wanted.items()}

    def _starts(self, wanted: Sequence[str]) -> dict[str, Offsets | int]:
        found: dict[str, Offsets | int] = {}
        for connection, groups, code in self._by_coordinator(wanted, _DESCRIBE_OFFSETS):
            if connection is None:
                found |= dict.fromkeys(groups, code)
                continue
            for some in pieces(groups, _REQUESTS_AT_ONCE):
                found |= self._describe_offsets(connection, some)
        return found

    def _describe_offsets(self, connection: Connection, groups: Sequence[str]) -> dict[str, Offsets | int]:
        """Query each group with a separate request: a broker answers for one group within milliseconds, and for several
        in one request after two seconds."""
        version = connection.version(*_DESCRIBE_OFFSETS)
        each = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
        requests = [
            DescribeShareGroupOffsetsRequest(version=version, groups=[each(group_id=name, topics=None)])
            for name in groups
        ]
        before = [self._described[name][0] if name in self._described else None for name in groups]
        answers = connection.ask_each_again(requests, DescribeShareGroupOffsetsResponse, before, REPLY_BYTES)
        for name, known, answer in zip(groups, before, answers, strict=True):
            if answer is not known:
                told = {group.group_id: group for group in answer.reply.groups}
                self._described[name] = answer._replace(reply=None), self._offsets(name, told.get(name))
        return {name: self._described[name][1] for name in groups}

    def _offsets(self, name: str, group: Any) -> Offsets | int:
        """Return the group's start offsets, without partitions in which it has not started."""
        found = {}
        for code in (error_policy.NOT_ANSWERED,) if group is None else _codes(group):
            self._coordinators.settled(code, f"reading the start offsets of share group {name}")
            if code:
                return code
        for topic in group.topics:
            for item in topic.partitions:
                if item.start_offset >= 0:
                    found[TopicPartition(topic.topic_name, item.partition_index)] = Committed(item.start_offset, "")
        return found

    def _pasts(self, wanted: Sequence[str]) -> Iterator[tuple[str, bool]]:
        for connection, groups, _ in self._by_coordinator(wanted, _DESCRIBE):
            for some in pieces(groups, GROUPS_AT_ONCE):
                if connection is None:
                    yield from ((name, True) for name in some)
                    continue
                request = ShareGroupDescribeRequest(
                    version=connection.version(*_DESCRIBE), group_ids=list(some), include_authorized_operations=False
                )
                reply = connection.ask(request, ShareGroupDescribeResponse, REPLY_BYTES)
                for group in reply.groups:
                    code = int(group.error_code)
                    self._coordinators.settled(code, f"describing share group {group.group_id}")
                    if code != error_codes.GROUP_ID_NOT_FOUND:
                        yield str(group.group_id), bool(code) or group.group_epoch > _EPOCH_WITHOUT_MEMBERS

    def _alter(self, wanted: Mapping[str, Offsets]) -> Iterator[tuple[str, Codes]]:
        for connection, groups, code in self._by_coordinator(sorted(wanted), _ALTER_OFFSETS):
            for name in groups:
                if connection is None:
                    yield name, dict.fromkeys(wanted[name], code)
                    continue
                version = connection.version(*_ALTER_OFFSETS)
                request = _alter_request(version, name, wanted[name])
                yield name, _altered(connection.ask(request, AlterShareGroupOffsetsResponse), wanted[name])

    def _by_coordinator(
        self, groups: Sequence[str], api: tuple[int, int, int]
    ) -> Iterator[tuple[Connection | None, Sequence[str], int]]:
        """Yield (connection to the coordinator, its groups, 0), and (None, groups, error code) for groups that cannot
        be queried."""
        for address, names, code in self._coordinators.of(groups):
            connection = None if address is None else self._coordinators.at(address)
            if connection is not None and not _serves(connection, *api):
                connection, code = None, error_codes.UNSUPPORTED_VERSION
            yield connection, names, code


def _serves(connection: Connection, api_key: int, lowest: int, highest: int) -> bool:
    low, high = connection.versions.get(api_key, (0, -1))
    return max(low, lowest) <= min(high, highest)


def _codes(group: Any) -> Iterator[int]:
    yield int(group.error_code)
    for topic in group.topics:
        yield from (int(item.error_code) for item in topic.partitions)


def _altered(reply: Any, wanted: Offsets) -> Codes:
    if reply.error_code:
        return dict.fromkeys(wanted, int(reply.error_code))
    return dict.fromkeys(wanted, error_policy.NOT_ANSWERED) | {
        TopicPartition(topic.topic_name, item.partition_index): int(item.error_code)
        for topic in reply.responses
        for item in topic.partitions
    }


def _alter_request(version: int, group: str, starts: Offsets) -> Any:
    topic_class = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for (topic, number), start in starts.items():
        by_topic[topic].append(
            topic_class.AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=start.offset)
        )
    return AlterShareGroupOffsetsRequest(
        version=version,
        group_id=group,
        topics=[topic_class(topic_name=topic, partitions=items) for topic, items in by_topic.items()],
    )
