"""Who leads what: each partition is fetched from its source's leader and sent to its destination's."""

from collections import defaultdict
from collections.abc import Callable, Sequence

from strait.engine.fetcher import Fetcher
from strait.engine.partition.partition import Partition
from strait.engine.partition.position import Phase
from strait.engine.recovery.coordinator import RecoveryCoordinator
from strait.engine.recovery.topic_problems import destination_recreated, source_problem
from strait.engine.sender import Sender
from strait.net import error_policy
from strait.net.cluster_client import ClusterClient
from strait.net.event_loop import Loop


class Leadership:
    """One fetcher for each broker of the source, and one sender for each line to a broker of the destination.

    ``make_fetcher`` gets the broker, ``make_sender`` the broker and the line.
    """

    def __init__(
        self,
        loop: Loop,
        source: ClusterClient,
        destination: ClusterClient,
        map_topic: str,
        recovery: RecoveryCoordinator,
        *,
        make_fetcher: Callable[[int], Fetcher],
        make_sender: Callable[[int, int], Sender],
    ) -> None:
        self._loop = loop
        self._source = source
        self._destination = destination
        self._map_topic = map_topic
        self._recovery = recovery
        self._make_fetcher = make_fetcher
        self._make_sender = make_sender
        self._partitions: Sequence[Partition] = ()
        self._fetchers: dict[int, Fetcher] = {}
        self._senders: dict[tuple[int, int], Sender] = {}  # by broker and line
        source.on_metadata = self._assign_sources
        destination.on_metadata = self._assign_destinations

    def follow(self, partitions: Sequence[Partition]) -> None:
        """From now on these are copied."""
        self._partitions = partitions
        self._source.interest = {partition.topic for partition in partitions}
        self._destination.interest = {self._map_topic, *(partition.destination for partition in partitions)}
        if all(map(self._has_leaders, partitions)):  # what goes on again need not wait for news
            self._assign_sources()
            self._assign_destinations()
        self._source.refresh()
        self._destination.refresh()

    def fetch(self) -> None:
        """Ask for more."""
        for fetcher in self._fetchers.values():
            fetcher.ask()

    def send(self) -> None:
        """Send as much as the connections take."""
        for sender in self._senders.values():
            sender.send()

    def schedule(self, partition: Partition) -> None:
        """It has something to send."""
        sender = self._senders.get((partition.queue.node, partition.queue.line))
        if sender is not None:
            sender.schedule(partition)

    def _has_leaders(self, partition: Partition) -> bool:
        """As last heard, on both sides."""
        ends = (self._source, partition.topic), (self._destination, partition.destination)
        return all((topic, partition.number) in cluster.leaders for cluster, topic in ends)

    def _assign_sources(self) -> None:
        """Metadata of the source came."""
        led: dict[int, list[Partition]] = defaultdict(list)
        troubled = False
        for partition in self._partitions:
            leader = self._source.leader(partition.topic, partition.number)
            partition.cursor.led_at(leader.epoch)
            problem = source_problem(self._source, partition)
            if problem is not None:
                partition.block(*problem, until=0.0)
                troubled = True
            else:
                led[leader.node].append(partition)
        if troubled:
            self._loop.call_later(error_policy.SHORTLY_SECONDS[0], self._source.refresh)
        for node in led.keys() - self._fetchers.keys():
            self._fetchers[node] = self._make_fetcher(node)
        for node, fetcher in self._fetchers.items():
            fetcher.fit(len(self._fetchers))
            fetcher.assign(led.get(node, ()))

    def _assign_destinations(self) -> None:
        """Metadata of the destination came: the position is looked up again if the leader has changed."""
        for partition in self._partitions:
            node, known = self._destination.leader(partition.destination, partition.number).node, partition.queue.node
            partition.queue.route(node)
            if partition.position.phase is not Phase.AWAIT_POSITION:
                if node != known:
                    self._reset(partition, "the destination's leader has changed")
                elif destination_recreated(self._destination, partition):
                    # Brokers before 4.1 take batches by the topic's name: nothing more may go to its successor.
                    self._reset(partition, "the destination topic was created again")
            way = node, partition.queue.line
            if node >= 0 and way not in self._senders:
                self._senders[way] = self._make_sender(*way)

    def _reset(self, partition: Partition, detail: str) -> None:
        self._recovery.reset(partition, None, detail, error_policy.SOON_SECONDS)
