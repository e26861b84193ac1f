"""The brokers of a cluster, for occasional requests: any of them, each, the one at an address, a partition's leader."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, TypeVar

from kafka.protocol.metadata import MetadataResponse

from strait.config.route_names import topic_of
from strait.errors import ClusterUnavailable, StraitError
from strait.model import TopicPartition
from strait.net.addresses import parse_addresses
from strait.net.handshake import Connection, dial
from strait.net.known_topics import METADATA, metadata_request
from strait.net.security import Security
from strait.waiting import tries

_PAUSE_SECONDS = 0.2
_REPLY_BYTES = 64 << 20
_T = TypeVar("_T")

Address = tuple[str, int]


@contextmanager
def any_broker(properties: Mapping[str, str], cluster: str) -> Iterator[Connection]:
    """Connect to any bootstrap address that answers. Raises ClusterUnavailable if none does, NotAuthorized."""
    security = Security(cluster, properties)
    trouble: ClusterUnavailable | None = None
    addresses = parse_addresses(cluster, properties["bootstrap.servers"])
    for address in random.sample(addresses, len(addresses)):  # random order: a retry most likely uses another broker
        try:
            connection = dial(cluster, address, security)
        except ClusterUnavailable as error:
            trouble = error
            continue
        try:
            yield connection
        finally:
            connection.close()
        return
    raise trouble or ClusterUnavailable(cluster, "no broker to ask")


@contextmanager
def broker_at(properties: Mapping[str, str], cluster: str, address: Address) -> Iterator[Connection]:
    """Connect to this broker and no other. Raises ClusterUnavailable, NotAuthorized."""
    connection = dial(cluster, address, Security(cluster, properties))
    try:
        yield connection
    finally:
        connection.close()


class Leader(NamedTuple):
    """The leader of a partition, or the error code of the partition. ``address`` None: it has no leader now."""

    address: Address | None
    error: int


class Brokers:
    """Keeps a connection to each broker that was queried, until `drop`."""

    def __init__(self, properties: Mapping[str, str], cluster: str) -> None:
        self.properties = properties
        self.cluster = cluster
        self._connections: dict[Address, Connection] = {}
        self._open = ExitStack()

    def at(self, address: Address) -> Connection:
        """Return a connection to this broker. Raises ClusterUnavailable, NotAuthorized."""
        if address not in self._connections:
            broker = broker_at(self.properties, self.cluster, address)
            self._connections[address] = self._open.enter_context(broker)
        return self._connections[address]

    def drop(self) -> None:
        """Close all connections."""
        self._connections.clear()
        self._open.close()


def metadata(connection: Connection, topics: Iterable[str]) -> Any:
    """Ask a broker for the brokers that are alive, and for these topics by name."""
    request = metadata_request(connection.version(METADATA[0], *METADATA[1]), topics)
    return connection.ask(request, MetadataResponse, _REPLY_BYTES)


def every_address(properties: Mapping[str, str], cluster: str) -> list[Address]:
    """Return the addresses of all brokers that the cluster lists as alive. Raises ClusterUnavailable, NotAuthorized."""
    with any_broker(properties, cluster) as connection:
        return list(_addresses(metadata(connection, ())).values())


def leaders(properties: Mapping[str, str], cluster: str, topics: Iterable[str]) -> dict[TopicPartition, Leader]:
    """Return the leaders of all partitions of these topics. Raises ClusterUnavailable, NotAuthorized."""
    with any_broker(properties, cluster) as connection:
        reply = metadata(connection, topics)
    addresses = _addresses(reply)
    return {
        TopicPartition(topic.name, item.partition_index): Leader(addresses.get(item.leader_id), item.error_code)
        for topic in reply.topics
        for item in topic.partitions
    }


class Replica(NamedTuple):
    """A replica of a partition. ``address`` None: its broker is not alive."""

    broker: int
    address: Address | None
    leads: bool


def replicas(properties: Mapping[str, str], cluster: str, place: TopicPartition) -> list[Replica]:
    """Return the replicas of a partition, the leader's first. Raises ClusterUnavailable, NotAuthorized."""
    with any_broker(properties, cluster) as connection:
        reply = metadata(connection, [topic_of(place.topic)])
    addresses = _addresses(reply)
    found = [
        Replica(node, addresses.get(node), node == item.leader_id)
        for topic in reply.topics
        for item in topic.partitions
        if item.partition_index == place.partition
        for node in item.replica_nodes
    ]
    return sorted(found, key=lambda one: (not one.leads, one.broker))


def _addresses(reply: Any) -> dict[int, Address]:
    return {broker.node_id: (str(broker.host), int(broker.port)) for broker in reply.brokers}


def until_answered(ask: Callable[[], _T], timeout_seconds: float) -> _T:
    """Return the result of ``ask``, repeated every 0.2 s while it fails with a retriable error. Raises the last error
    after ``timeout_seconds``, and any other error immediately."""
    trouble: StraitError | None = None
    for _ in tries(timeout_seconds, _PAUSE_SECONDS):
        try:
            return ask()
        except StraitError as error:
            if not error.retriable:
                raise
            trouble = error
    assert trouble is not None
    raise trouble
