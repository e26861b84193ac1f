"""Where logs end, asked of every broker over connections that stay: an answer takes a millisecond, also while leaders
move."""

import threading
import time
from collections.abc import Mapping, Sequence

from kafka.protocol.consumer import ListOffsetsResponse

from strait.embedded.kafka import Cluster
from strait.errors import StraitError
from strait.net import offsets
from strait.net.addresses import parse_addresses
from strait.net.handshake import Connection, dial
from strait.net.security import Security

_PATIENCE_SECONDS = 60.0
_ANSWER_SECONDS = 2.0
_PAUSE_SECONDS = 0.02


class Brokers:
    """Connections to all brokers of a cluster."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._security = Security("it", properties)
        self._connections: dict[tuple[str, int], Connection | None] = dict.fromkeys(
            parse_addresses("it", properties["bootstrap.servers"])
        )

    def ends(self, partitions: Sequence[tuple[str, int]], patience_seconds: float = _PATIENCE_SECONDS) -> list[int]:
        """In the order of ``partitions``. Asks again while one has no leader."""
        deadline = time.monotonic() + patience_seconds
        while True:
            found: dict[tuple[str, int], int] = {}
            for address in self._connections:
                found |= self._led_by(address, [partition for partition in partitions if partition not in found])
            missing = [partition for partition in partitions if partition not in found]
            if not missing:
                return [found[partition] for partition in partitions]
            assert time.monotonic() < deadline, f"nobody leads {len(missing)} partitions: {missing[:5]} …"
            time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        for connection in filter(None, self._connections.values()):
            connection.close()

    def _led_by(self, address: tuple[str, int], partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """What a broker leads of these; nothing while it is not there."""
        if not partitions:
            return {}
        try:
            connection = self._connections[address] or dial("it", address, self._security, _ANSWER_SECONDS)
            self._connections[address] = connection
            version = connection.version(offsets.API_KEY, *offsets.VERSIONS)
            request = offsets.offsets_request(version, partitions, offsets.LATEST)
            answers = offsets.offsets_of(connection.ask(request, ListOffsetsResponse))
        except StraitError:
            if (broken := self._connections[address]) is not None:
                broken.close()
                self._connections[address] = None
            return {}
        return {partition: offset for partition, (error, offset) in answers.items() if not error}


class LogEnds:
    """Of the partitions of ``topics`` (name -> partitions) in ``cluster``."""

    def __init__(self, cluster: Cluster, topics: Mapping[str, int]) -> None:
        self._brokers = Brokers(cluster.client_properties)
        self.partitions = [(topic, number) for topic, count in topics.items() for number in range(count)]

    def now(self, patience_seconds: float = _PATIENCE_SECONDS) -> list[int]:
        """In the order of ``topics``. Asks again while a partition has no leader."""
        return self.of(self.partitions, patience_seconds)

    def of(self, partitions: Sequence[tuple[str, int]], patience_seconds: float = _PATIENCE_SECONDS) -> list[int]:
        """The same of these partitions, in their order."""
        return self._brokers.ends(partitions, patience_seconds)

    def close(self) -> None:
        self._brokers.close()


class _Asked(threading.local):
    """Clusters that this thread has asked before. A client made for each question would cost a hundred times more, and
    tests ask many times a second."""

    def __init__(self) -> None:
        self.brokers: dict[tuple[tuple[str, str], ...], Brokers] = {}


_asked = _Asked()


def ends(cluster: Cluster, topic: str, partitions: int) -> list[int]:
    """The end offset of each partition. Asks again while leaders move."""
    properties = cluster.client_properties
    key = tuple(sorted(properties.items()))
    brokers = _asked.brokers.get(key)
    if brokers is None:
        brokers = _asked.brokers[key] = Brokers(properties)
    return brokers.ends([(topic, number) for number in range(partitions)])
