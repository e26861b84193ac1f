"""Checks the replicas that do not lead: each is read on its own, since brokers let consumers read followers (KIP-392).

A follower has the bytes of its leader's batches. So each of its batches must match its checksum, and have the checksum of
the leader's batch with this offset. The latter is not checked if the topic is compacted, since each replica is compacted
separately.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import NamedTuple

from strait.audit.feed import END, Hole, Item, Side
from strait.audit.findings import NOWHERE, Difference
from strait.audit.reading import LogSide, Pace
from strait.audit.replicas import INTACT
from strait.config.cluster import Cluster
from strait.errors import CorruptBatch, StraitError
from strait.model import TopicPartition
from strait.net.brokers import Address, Replica, replicas
from strait.net.cluster_facts import log_directory
from strait.net.partition_logs import PartitionLogs
from strait.waiting import tries
from strait.wire.batch import Batch, check

_CATCH_UP_SECONDS = 5.0
"""Time in which a follower must get the records that its leader had when the audit was planned; one in sync needs 0.5 s."""
_PAUSE_SECONDS = 0.2


@dataclass
class LeaderRead:
    """The batches that were read from a partition's leader.

    Attributes:
        checksums: base offset -> checksum in the header.
        damaged: first offsets of damaged ones.
    """

    place: TopicPartition
    first: int
    end: int
    compacted: bool
    checksums: dict[int, int] = field(default_factory=dict)
    damaged: set[int] = field(default_factory=set)

    def noting(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items, and note the batches among them."""
        for item in items:
            if isinstance(item, Batch):
                self.checksums[item.base_offset] = item.crc
            yield item


@dataclass
class FollowersRead:
    """The result. ``unread``: the replicas that could not be checked, with the reasons."""

    differences: list[Difference] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    bytes: int = 0


class Fault(NamedTuple):
    """A batch of a follower that is not its leader's. ``why`` empty: it is damaged."""

    offset: int
    records: int
    why: str = ""


class Followers:
    """The followers of one cluster, over connections that are kept until it is closed."""

    def __init__(self, cluster: Cluster, side: Side, pace: Pace) -> None:
        self._cluster = cluster
        self._side = side
        self._pace = pace
        self._logs: dict[Address, PartitionLogs] = {}

    def close(self) -> None:
        for logs in self._logs.values():
            logs.__exit__(None, None, None)

    def check(self, leader: LeaderRead) -> FollowersRead:
        """Read all followers of the partition. If one cannot be read, the others still are."""
        found = FollowersRead()
        try:
            every = replicas(*self._cluster, leader.place)
        except StraitError as error:
            found.unread.append(f"{self._side}: its replicas could not be read: {error}")
            return found
        name = next((str(one.broker) for one in every if one.leads), "unknown")
        for one in every:
            if one.leads:
                continue
            try:
                self._check(one, leader, name, found)
            except StraitError as error:
                found.unread.append(f"{self._side}: broker {one.broker}: {error}")
        return found

    def _check(self, replica: Replica, leader: LeaderRead, leads: str, found: FollowersRead) -> None:
        if replica.address is None:
            found.unread.append(f"{self._side}: broker {replica.broker} is not alive")
            return
        if replica.address not in self._logs:
            self._logs[replica.address] = PartitionLogs(*self._cluster, broker=replica.address)
        side = LogSide(self._logs[replica.address], self._pace, compacted=leader.compacted)
        log = _Log(side, leader)
        faults = list(faults_of(log.items(), leader))
        found.bytes += log.bytes
        if log.readable < leader.end:
            found.unread.append(
                f"{self._side}: broker {replica.broker} has the records before offset {log.readable} only"
            )
        if faults:
            directory = log_directory(*self._cluster, replica.address, leader.place)
            where = f"on broker {replica.broker}" + (f" ({directory})" if directory else "")
            found.differences += [self._difference(one, where, leads) for one in faults]

    def _difference(self, fault: Fault, where: str, leads: str) -> Difference:
        places = (fault.offset, NOWHERE) if self._side == "source" else (NOWHERE, fault.offset)
        why = f": {fault.why}" if fault.why else ""
        return Difference(
            "damaged", *places, fault.records, detail=f"{self._side}; {where}{why}; {INTACT} {leads} (leader)"
        )


@dataclass
class _Log:
    """A follower's part of the log. ``readable``: the offset up to which it has records, at most the end of the part."""

    side: LogSide
    leader: LeaderRead
    bytes: int = 0
    readable: int = 0

    def items(self) -> Iterator[Item]:
        """Yield its batches, damaged ones as holes; at its end a hole of the records that it does not have yet."""
        self.readable = self.leader.first
        for _ in tries(_CATCH_UP_SECONDS, _PAUSE_SECONDS):
            with closing(self.side.items(self.leader.place, self.readable, self.leader.end)) as items:
                yield from map(self._judged, items)
            self.readable = min(self.leader.end, max(self.readable, self.side.readable))
            if self.readable >= self.leader.end:
                return
        yield Hole(self.readable, END, "deleted")

    def _judged(self, item: Item) -> Item:
        if isinstance(item, Hole):
            return item
        self.bytes += len(item.view)
        try:
            check(item)
        except CorruptBatch:
            return Hole(item.base_offset, item.base_offset + max(1, item.records), "damaged")
        return item


def faults_of(items: Iterable[Item], leader: LeaderRead) -> Iterator[Fault]:
    """Yield the faults of a follower's items. Damage that the leader has too is not of the follower alone, and named with
    the leader's. Pure."""
    checksums: dict[int, int] = {}
    unread: list[tuple[int, int]] = []
    for item in items:
        if isinstance(item, Batch):
            checksums[item.base_offset] = item.crc
            continue
        unread.append((item.first, item.end))
        if item.why == "damaged" and item.first not in leader.damaged:
            yield Fault(item.first, item.end - item.first)
    for offset, checksum in () if leader.compacted else leader.checksums.items():
        if offset in leader.damaged or any(first <= offset < end for first, end in unread):
            continue
        if offset not in checksums:
            yield Fault(offset, 1, "no batch starts here")
        elif checksums[offset] != checksum:
            yield Fault(offset, 1, "other bytes than the leader's")
