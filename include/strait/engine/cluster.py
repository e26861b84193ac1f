"""One cluster as the engine sees it: who leads which partition, and a channel to each broker that is needed.

Channels are dialled on demand and again, with back-off, after they were lost. Metadata comes over a channel of its own,
so that it never waits behind a long poll.
"""

import random
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from strait.engine.buffers import BufferPool
from strait.engine.channel import Channel
from strait.engine.dial import Connection, dial
from strait.engine.loop import Loop
from strait.engine.security import Security
from strait.errors import ConfigError, StraitError

METADATA_REFRESH_SECONDS = 60.0
METADATA_PAUSE_SECONDS = 0.1  # between two refreshes that errors ask for
DIAL_BACKOFF_SECONDS = (0.1, 2.0)
_BOOTSTRAP = -1  # stands for the metadata channel
_NO_ID = UUID(int=0)
_METADATA_API_KEY = 3


class Leader(NamedTuple):
    """Who leads a partition. ``node`` is -1 while nobody does."""

    node: int
    epoch: int


class Cluster:
    """Names, ids and leaders of the topics in ``interest``; ``on_metadata`` is called after each refresh."""

    def __init__(self, loop: Loop, pool: BufferPool, name: str, properties: Mapping[str, str]) -> None:
        self.name = name
        self.leaders: dict[tuple[str, int], Leader] = {}
        self.topic_ids: dict[str, UUID] = {}
        self.topic_errors: dict[str, int] = {}
        self.interest: set[str] = set()
        self.on_metadata: Callable[[], None] = lambda: None
        self._loop = loop
        self._pool = pool
        self._security = Security(name, properties)
        self._bootstrap = parse_addresses(name, properties["bootstrap.servers"])
        self._addresses: dict[int, tuple[str, int]] = {}
        self._channels: dict[int, Channel] = {}
        self._dialling: set[int] = set()
        self._failures: dict[int, int] = {}
        self._troubles: dict[int, str] = {}
        self._asking = False
        self._refresh_due = False
        self._closed = False

    def channel(self, node: int) -> Channel | None:
        """The channel to a broker, or None while there is none; it is then being dialled and ``trouble`` says more."""
        channel = self._channels.get(node)
        if channel is None and node not in self._dialling and node in self._addresses:
            self._dial(node, self._addresses[node])
        return channel

    def trouble(self, node: int) -> str:
        """Why there is no channel to a broker, or why the cluster cannot be asked at all; "" where nothing is known."""
        return self._troubles.get(node) or self._troubles.get(_BOOTSTRAP, "")

    def leader(self, topic: str, partition: int) -> Leader:
        return self.leaders.get((topic, partition), Leader(-1, -1))

    def refresh(self) -> None:
        """Ask for metadata soon; many calls make one request."""
        if not self._refresh_due and not self._closed:
            self._refresh_due = True
            self._loop.call_later(METADATA_PAUSE_SECONDS, self._ask_metadata)

    def keep_fresh(self) -> None:
        """Ask for metadata now and every minute."""
        self.refresh()
        self._loop.call_later(METADATA_REFRESH_SECONDS, self.keep_fresh)

    def expire(self) -> None:
        """Close channels whose oldest request got no reply in time."""
        for channel in list(self._channels.values()):
            channel.expire()

    def close(self) -> None:
        self._closed = True
        for channel in list(self._channels.values()):
            channel.close("the slot ends")

    def _ask_metadata(self) -> None:
        self._refresh_due = False
        if self._asking or self._closed:
            return
        channel = self._channels.get(_BOOTSTRAP)
        if channel is None:
            if _BOOTSTRAP not in self._dialling:
                self._dial(_BOOTSTRAP, random.choice([*self._bootstrap, *self._addresses.values()]))  # noqa: S311
            return
        self._asking = True
        version = channel.version(_METADATA_API_KEY, (9, 12))
        request = MetadataRequest(
            version=version,
            topics=[MetadataRequest.MetadataRequestTopic(topic_id=_NO_ID, name=name) for name in sorted(self.interest)],
            allow_auto_topic_creation=False,
        )
        channel.ask(request, MetadataResponse, on_reply=self._take_metadata, on_lost=self._metadata_lost)

    def _take_metadata(self, reply: Any) -> None:
        self._asking = False
        addresses = {broker.node_id: (broker.host, broker.port) for broker in reply.brokers}
        for node, address in addresses.items():
            if self._addresses.get(node, address) != address and node in self._channels:
                self._channels[node].close("the broker has moved to another address")
        self._addresses = addresses
        for topic in reply.topics:
            self.topic_errors[topic.name] = topic.error_code
            recreated = topic.topic_id != self.topic_ids.get(topic.name, topic.topic_id)
            if topic.topic_id != _NO_ID:
                self.topic_ids[topic.name] = topic.topic_id
            for item in topic.partitions:
                leader = Leader(item.leader_id, item.leader_epoch)
                known = self.leaders.get((topic.name, item.partition_index))
                if known is None or recreated or leader.epoch >= known.epoch:  # a broker may lag behind the others
                    self.leaders[topic.name, item.partition_index] = leader
        self.on_metadata()

    def _metadata_lost(self, cause: str) -> None:
        self._asking = False
        self._troubles[_BOOTSTRAP] = cause
        self.refresh()

    def _dial(self, node: int, address: tuple[str, int]) -> None:
        self._dialling.add(node)
        failures = self._failures.get(node, 0)
        shortest, longest = DIAL_BACKOFF_SECONDS
        wait = 0.0 if not failures else min(longest, shortest * 2**failures) * random.uniform(0.7, 1.0)  # noqa: S311
        self._loop.call_later(wait, partial(self._start_dialling, node, address))

    def _start_dialling(self, node: int, address: tuple[str, int]) -> None:
        """Handshakes block, so each runs on a thread of its own; what comes of it is handed to the loop's thread."""

        def work() -> None:
            try:
                connection = dial(self.name, address, self._security)
            except StraitError as error:
                cause = str(error)
                self._loop.call_from_thread(lambda: self._dial_failed(node, cause))
            else:
                self._loop.call_from_thread(lambda: self._dialled(node, connection))

        threading.Thread(target=work, name=f"dial-{self.name}-{node}", daemon=True).start()

    def _dial_failed(self, node: int, cause: str) -> None:
        self._dialling.discard(node)
        self._failures[node] = min(10, self._failures.get(node, 0) + 1)
        self._troubles[node] = cause
        self.refresh()  # the broker may be gone for good, or have moved

    def _dialled(self, node: int, connection: Connection) -> None:
        self._dialling.discard(node)
        if self._closed:
            connection.close()
            return
        self._failures.pop(node, None)
        self._troubles.pop(node, None)
        self._channels[node] = Channel(self._loop, self._pool, connection, partial(self._lost, node))
        if node == _BOOTSTRAP:
            self._ask_metadata()

    def _lost(self, node: int, cause: str) -> None:
        del self._channels[node]
        if not self._closed:
            self._failures[node] = self._failures.get(node, 0) + 1
            self._troubles[node] = cause
            self.refresh()


def parse_addresses(cluster: str, servers: str) -> list[tuple[str, int]]:
    """``host:port,[v6]:port`` -> pairs. Raises ConfigError."""
    addresses = []
    for item in filter(None, (part.strip() for part in servers.split(","))):
        host, _, port = item.rpartition("://")[2].rpartition(":")
        if not host or not port.isdigit():
            raise ConfigError(f"cluster {cluster}", [f"`bootstrap.servers`: {item!r} is not host:port"])
        addresses.append((host.strip("[]"), int(port)))
    if not addresses:
        raise ConfigError(f"cluster {cluster}", ["`bootstrap.servers` is empty"])
    return addresses
