"""Chooses the replica from which each partition of the source is fetched (KIP-392).

Fetches name the slot's rack. A leader that has a follower in that rack names it instead of sending records, and the
partition is fetched from there until the choice expires, the leader changes, or the follower fails.

A follower may lag, so only its records count. Any other result of it, such as an error or a divergence, may be due to
its lag, so the leader is asked, without naming the rack. Recovery, log ends and truncation ask leaders only.
"""

import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from functools import partial

from strait.engine.partition.partition import Partition
from strait.errors import ProtocolError
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop
from strait.net.known_topics import Leader
from strait.net.offsets import LATEST, ask_offsets, offsets_of
from strait.net.tasks import RequestLost, quiet_channel, run
from strait.pieces import pieces
from strait.wire.fetch import READ_COMMITTED

CHECK_SECONDS = 10.0
"""Time between two queries of a leader for the end of a partition that is fetched from a follower."""
REFUSED_SECONDS = 30.0
"""After a follower has failed, its partition is fetched from the leader for this long. By then the broker has removed
a follower that is dead or lags from the in-sync replicas, from which leaders choose."""
UNKNOWN_SECONDS = 1.0
"""The same if the leader names a broker that is not in the metadata."""
AT_ONCE = 500
"""Number of partitions in one request."""


class _Following:
    __slots__ = ("checked_end", "leader", "node", "until")

    def __init__(self, node: int, leader: Leader, until: float) -> None:
        self.node = node
        self.leader = leader  # that has chosen the follower
        self.until = until
        self.checked_end = -1  # the leader's last stable offset at the last check


class ReadReplicas:
    """The followers from which partitions of one slot are fetched. ``rack``: the slot's; "": all are fetched from
    leaders. A choice expires after ``expire_seconds``. ``moved`` is called with a partition that must be fetched from
    another replica, see `node`."""

    def __init__(
        self,
        loop: Loop,
        source: ClusterClient,
        rack: str,
        expire_seconds: float,
        moved: Callable[[Partition], None] = lambda _: None,
    ) -> None:
        self._loop = loop
        self._source = source
        self._rack = rack
        self._expire_seconds = expire_seconds
        self.moved = moved
        self._following: dict[Partition, _Following] = {}
        self._checks: deque[tuple[float, Partition, _Following]] = deque()  # the earliest first
        self._refusing: dict[int, int] = defaultdict(int)  # leader -> number of partitions that only it may serve

    def rack(self, leader: int) -> str:
        """Return the rack that a request to this broker names: none while one of its partitions needs its own
        reply."""
        return "" if self._refusing.get(leader) else self._rack

    def node(self, partition: Partition, leader: Leader) -> int:
        """Return the broker from which to fetch the partition, which now has this leader."""
        following = self._following.get(partition)
        if following is None:
            return leader.node
        if following.leader == leader and following.node in self._source.nodes:
            return following.node
        self.forget(partition)
        return leader.node

    def prefer(self, partition: Partition, node: int) -> None:
        """Fetch the partition from this follower, which its leader has named."""
        leader = self._source.leader(*partition.source_place)
        if self._refusing.get(leader.node):
            return  # it was named before
        if node == leader.node or node not in self._source.nodes:  # our metadata is outdated
            self._source.refresh((partition.source_topic,))
            self._refuse(leader.node, UNKNOWN_SECONDS)
            return
        until = self._loop.now + self._expire_seconds * random.uniform(0.8, 1.0)  # noqa: S311
        following = self._following[partition] = _Following(node, leader, until)
        self._check_later(partition, following)
        partition.cursor.read_from(follower=True)
        self.moved(partition)

    def refuse(self, partition: Partition) -> None:
        """Fetch the partition from its leader for a while, since the follower has failed or lags."""
        following = self._following.get(partition)
        if following is None:
            return
        self._refuse(following.leader.node, REFUSED_SECONDS)
        self._return(partition)

    def _refuse(self, leader: int, seconds: float) -> None:
        self._refusing[leader] += 1
        self._loop.call_later(seconds, partial(self._accept, leader))

    def _accept(self, leader: int) -> None:
        self._refusing[leader] -= 1

    def forget(self, partition: Partition) -> None:
        """Drop the choice for a partition that is fetched from another broker, or no longer."""
        if self._following.pop(partition, None) is not None:
            partition.cursor.read_from(follower=False)

    def _return(self, partition: Partition) -> None:
        self.forget(partition)
        self.moved(partition)

    def step(self) -> None:
        """Return expired partitions to their leaders, and start the checks that are due."""
        now = self._loop.now
        due: dict[int, list[Partition]] = defaultdict(list)
        while self._checks and self._checks[0][0] <= now:
            _, partition, following = self._checks.popleft()
            if self._following.get(partition) is not following:
                continue
            if following.until <= now:
                self._return(partition)
                continue
            self._check_later(partition, following)
            due[following.leader.node].append(partition)
        for node, partitions in due.items():
            for piece in pieces(partitions, AT_ONCE):
                run(self._check(node, piece))

    def _check_later(self, partition: Partition, following: _Following) -> None:
        wait = min(CHECK_SECONDS, self._expire_seconds)
        self._checks.append((self._loop.now + wait, partition, following))

    async def _check(self, node: int, partitions: Iterable[Partition]) -> None:
        """Query a leader for the ends of its partitions, so that the lag is known although a follower may not know it,
        and a follower that lags is not waited for."""
        places: dict[tuple[str, int], list[Partition]] = defaultdict(list)
        for partition in partitions:
            places[partition.source_place].append(partition)
        try:
            channel = await quiet_channel(self._loop, self._source, node)
            answers = offsets_of(await ask_offsets(self._loop, channel, places, LATEST, isolation=READ_COMMITTED))
        except (RequestLost, ProtocolError):
            return  # metadata will name another leader
        for place, partition in ((place, partition) for place, of_place in places.items() for partition in of_place):
            error, end = answers.get(place, (0, -1))
            following = self._following.get(partition)
            if following is None or error or end < 0 or following.leader.node != node:
                continue
            behind = is_behind(partition, following.checked_end)
            following.checked_end = end
            partition.leader_ends(end)
            if behind:
                self.refuse(partition)


def is_behind(partition: Partition, leader_end: int) -> bool:
    """Return whether all that the follower has is copied, although the leader had more at the last check, when its last
    stable offset was ``leader_end``."""
    cursor = partition.cursor
    return partition.idle and 0 <= cursor.follower_end <= cursor.offset < leader_end
