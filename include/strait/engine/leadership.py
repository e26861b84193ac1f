"""Tracks partition leaders: each partition is fetched from its source's leader, or from the follower that the leader
has named, and sent to its destination's leader.

Metadata updates are applied topic by topic, only for topics that have changed.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple

from strait.engine.broker_fetcher import LINES_OF_BROKER, BrokerFetcher
from strait.engine.fetcher import Fetcher
from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.engine.read_replicas import ReadReplicas
from strait.engine.recovery.coordinator import RecoveryCoordinator
from strait.engine.recovery.topic_problems import destination_recreated, source_problem
from strait.engine.sender import Sender
from strait.net import error_policy
from strait.net.cluster_client import ClusterClient
from strait.reasons import Reason

_NOBODY = -1
_Key = tuple[str, int]


class _Way(NamedTuple):
    """A pair of connections to a source broker, with a fetch session each. ``number`` 0: the only one without routes."""

    node: int
    number: int


_NO_WAY = _Way(_NOBODY, 0)


class Leadership:
    """One fetcher for each source broker, or for each route of a topic, and one sender for each connection to a destination broker.

    ``make_fetcher`` and ``make_sender`` get the broker and the number of the connection.
    """

    def __init__(
        self,
        source: ClusterClient,
        destination: ClusterClient,
        map_topic: str,
        recovery: RecoveryCoordinator,
        replicas: ReadReplicas,
        *,
        make_fetcher: Callable[[int, int], Fetcher],
        make_sender: Callable[[int, int], Sender],
    ) -> None:
        self._source = source
        self._destination = destination
        self._recovery = recovery
        self._replicas = replicas
        self._make_fetcher = make_fetcher
        self._make_sender = make_sender
        self._by_source: dict[str, dict[_Key, Partition]] = defaultdict(dict)
        self._by_destination: dict[str, dict[_Key, Partition]] = defaultdict(dict)
        self._fetched_from: dict[Partition, _Way] = {}
        self._fetchers: dict[_Way, BrokerFetcher] = {}
        self._places: dict[tuple[str, int], set[_Way]] = defaultdict(set)  # how each partition of the source is fetched
        self._senders: dict[tuple[int, int], Sender] = {}  # by broker and connection
        destination.interest.add(map_topic)
        self._fits = True
        source.on_metadata = self._assign_sources
        replicas.moved = self._move
        destination.on_metadata = self._assign_destinations

    def follow(self, added: Sequence[Partition], removed: Sequence[Partition]) -> None:
        """Start copying the partitions ``added``, and stop copying those ``removed``."""
        for partition in removed:
            self._drop(partition)
        for partition in added:
            self._by_source[partition.source_topic][_key(partition)] = partition
            self._by_destination[partition.destination][_key(partition)] = partition
        sources, destinations = {item.source_topic for item in added}, {item.destination for item in added}
        self._source.interest |= sources
        self._destination.interest |= destinations
        if all(map(self._has_leaders, added)):  # a resumed partition need not wait for new metadata
            self._assign_sources(sources)
            self._assign_destinations(destinations)
        if added:
            self._source.refresh(sources)
            self._destination.refresh(destinations)

    def tell_away(self) -> None:
        """Show on its partitions why a cluster is unreachable that has never responded, and so has reported no
        leaders."""
        trouble = "" if self._source.nodes else self._source.trouble(_NOBODY)
        if trouble:
            reason = error_policy.away(Reason.SOURCE_UNREACHABLE, self._source.why_away(_NOBODY))
            for partition in _all(self._by_source):
                partition.block(reason, trouble, until=0.0)
        trouble = "" if self._destination.nodes else self._destination.trouble(_NOBODY)
        if trouble:
            reason = error_policy.away(Reason.DESTINATION_UNREACHABLE, self._destination.why_away(_NOBODY))
            for partition in _all(self._by_destination):
                partition.show(reason, trouble)

    def fetch(self) -> None:
        """Request more data, first through the fetchers that hold the least memory."""
        if not self._fits:
            self.fit()
        for fetcher in sorted(self._fetchers.values(), key=_held_bytes):
            fetcher.ask()

    def send(self) -> None:
        """Send as much as the connections accept."""
        for sender in self._senders.values():
            sender.send()

    def schedule(self, partition: Partition, now: float) -> None:
        """Give a partition that has something to send its turn."""
        if partition.queue.node < 0:
            return
        partition.queue.choose_line(now)
        way = partition.queue.node, partition.queue.line
        if way not in self._senders:
            self._senders[way] = self._make_sender(*way)
        self._senders[way].schedule(partition)

    def _drop(self, partition: Partition) -> None:
        for topics, topic, cluster in (
            (self._by_source, partition.source_topic, self._source),
            (self._by_destination, partition.destination, self._destination),
        ):
            if topics[topic].get(_key(partition)) is partition:
                del topics[topic][_key(partition)]
            if not topics[topic]:
                del topics[topic]
                cluster.interest.discard(topic)
        self._replicas.forget(partition)
        self._fetch_from(_NOBODY, partition)

    def _has_leaders(self, partition: Partition) -> bool:
        """Return whether both leaders are known from the last metadata."""
        ends = (self._source, partition.source_topic), (self._destination, partition.destination)
        return all((topic, partition.number) in cluster.leaders for cluster, topic in ends)

    def _assign_sources(self, topics: Iterable[str]) -> None:
        """Apply new metadata of these source topics."""
        for topic in topics:
            troubles: set[Reason] = set()
            for partition in self._by_source.get(topic, {}).values():
                leader = self._source.leader(topic, partition.number)
                partition.cursor.led_at(leader.epoch)
                problem = source_problem(self._source, partition)
                node = self._replicas.node(partition, leader)
                if problem is not None:
                    partition.block(*problem, until=0.0)
                    troubles.add(problem[0])
                self._fetch_from(_NOBODY if problem else node, partition)
            if troubles:
                self._source.look_again(topic, leaderless=Reason.SOURCE_LEADERLESS in troubles)
        self.fit()

    def _move(self, partition: Partition) -> None:
        """Fetch a partition from another replica."""
        if partition in self._fetched_from:
            leader = self._source.leader(*partition.source_place)
            self._fetch_from(self._replicas.node(partition, leader), partition)
            self._fits = False

    def fit(self) -> None:
        """Divide the slot's memory between the fetchers that have partitions."""
        self._fits = True
        used = sum(fetcher.used for fetcher in self._fetchers.values())
        for fetcher in self._fetchers.values():
            fetcher.fit(used if fetcher.used else 0)

    def _fetch_from(self, node: int, partition: Partition) -> None:
        before = self._fetched_from.get(partition, _NO_WAY)
        if node == before.node:
            return
        if before is not _NO_WAY:
            self._fetchers[before].remove(partition)
            del self._fetched_from[partition]
            self._places[partition.source_place].discard(before)
            if not self._places[partition.source_place]:
                del self._places[partition.source_place]
        if node != _NOBODY:
            way = self._free_way(node, partition)
            fetcher = self._fetchers.get(way)
            if fetcher is None:
                fetcher = self._fetchers[way] = BrokerFetcher(partial(self._make_fetcher_of, way))
            fetcher.add(partition)
            self._fetched_from[partition] = way
            self._places[partition.source_place].add(way)

    def _free_way(self, node: int, partition: Partition) -> "_Way":
        """Return a way by which no other partition of this slot fetches the same partition of the source: a fetch session has
        each once, and each route reads from its own position."""
        taken = self._places[partition.source_place]
        return next(way for way in (_Way(node, number) for number in count()) if way not in taken)

    def _make_fetcher_of(self, way: "_Way", line: int) -> Fetcher:
        return self._make_fetcher(way.node, way.number * LINES_OF_BROKER + line)

    def _assign_destinations(self, topics: Iterable[str]) -> None:
        """Apply new metadata of these destination topics. If a leader has changed or a topic was recreated, the
        position is looked up again."""
        for topic in topics:
            for partition in self._by_destination.get(topic, {}).values():
                node, known = self._destination.leader(topic, partition.number).node, partition.queue.node
                partition.queue.route(node)
                if partition.position.phase is not Phase.AWAIT_POSITION:
                    if node != known:
                        self._reset(partition, "the destination's leader has changed")
                    elif destination_recreated(self._destination, partition):
                        # Brokers before 4.1 accept batches by the topic's name: nothing more may go to its successor.
                        self._reset(partition, "the destination topic was created again")

    def _reset(self, partition: Partition, detail: str) -> None:
        self._recovery.reset(partition, None, detail, error_policy.SOON_SECONDS)


def _key(partition: Partition) -> _Key:
    return partition.topic, partition.number


def _all(topics: Mapping[str, Mapping[_Key, Partition]]) -> Iterator[Partition]:
    return (partition for partitions in topics.values() for partition in partitions.values())


def _held_bytes(fetcher: BrokerFetcher) -> int:
    return fetcher.held_bytes
