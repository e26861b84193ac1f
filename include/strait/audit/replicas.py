"""Names the replicas of a partition that hold a damaged batch: each is read on its own, since brokers let consumers read
followers (KIP-392).

No request returns the segment file that holds an offset: it is the one whose name is the highest number up to the offset.
"""

from collections.abc import Iterator
from typing import NamedTuple

from strait.audit.feed import Hole
from strait.audit.findings import Difference
from strait.audit.reading import LogSide, Pace
from strait.config.cluster import Cluster
from strait.errors import CorruptBatch, StraitError
from strait.model import TopicPartition
from strait.net.brokers import Replica, replicas
from strait.net.cluster_facts import log_directory
from strait.net.partition_logs import PartitionLogs
from strait.wire.batch import check

INTACT = "intact on broker"
MOST_LOCATED = 20
"""Damaged batches of one chunk whose replicas are read."""


class _Read(NamedTuple):
    """A replica, and its state: ``damaged``, ``intact``, or why it could not be read."""

    replica: Replica
    state: str
    directory: str = ""

    @property
    def name(self) -> str:
        notes = ["leader"] * self.replica.leads + [self.directory] * bool(self.directory)
        return f"{self.replica.broker}" + (f" ({', '.join(notes)})" if notes else "")


def located(found: Difference, cluster: Cluster, place: TopicPartition) -> Difference:
    """Return a damage of one side with the brokers whose replicas have it. ``place``: the partition on that side."""
    first = found.copy if found.source < 0 else found.source
    try:
        read = [_read(cluster, place, one, (first, first + found.records)) for one in replicas(*cluster, place)]
    except StraitError as error:
        return found._replace(detail=f"{found.detail}; its replicas could not be read: {error}")
    return found._replace(detail="; ".join([found.detail, *_told(read)]))


def _read(cluster: Cluster, place: TopicPartition, replica: Replica, offsets: tuple[int, int]) -> _Read:
    if replica.address is None:
        return _Read(replica, "its broker is not alive")
    try:
        with PartitionLogs(*cluster, broker=replica.address) as logs:
            if not _is_damaged(LogSide(logs, Pace(0.0), compacted=True), place, offsets):
                return _Read(replica, "intact")
        return _Read(replica, "damaged", log_directory(*cluster, replica.address, place))
    except StraitError as error:
        return _Read(replica, str(error))


def _is_damaged(side: LogSide, place: TopicPartition, offsets: tuple[int, int]) -> bool:
    for item in side.items(place, *offsets):
        if isinstance(item, Hole):
            if item.why == "damaged":
                return True
            continue
        try:
            check(item)
        except CorruptBatch:
            return True
    return False


def _told(read: list[_Read]) -> Iterator[str]:
    damaged = [one.name for one in read if one.state == "damaged"]
    intact = [one.name for one in read if one.state == "intact"]
    if damaged:
        only = ", its only replica" if len(read) == 1 else ", so on all replicas" if len(damaged) == len(read) else ""
        yield f"on broker {', '.join(damaged)}{only}"
    if intact:
        yield f"{INTACT} {', '.join(intact)}"
    yield from (f"broker {one.name} unknown: {one.state}" for one in read if one.state not in ("damaged", "intact"))
