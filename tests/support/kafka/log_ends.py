"""Where logs end, asked of every broker over connections that stay: an answer takes a millisecond, also while leaders
move."""

import time
from collections.abc import Mapping

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


class LogEnds:
    """Of the partitions of ``topics`` (name -> partitions) in ``cluster``, of plain listeners."""

    def __init__(self, cluster: Cluster, topics: Mapping[str, int]) -> None:
        properties = cluster.client_properties
        self._security = Security("it", properties)
        self._brokers: dict[tuple[str, int], Connection | None] = dict.fromkeys(
            parse_addresses("it", properties["bootstrap.servers"])
        )
        self._partitions = [(topic, number) for topic, count in topics.items() for number in range(count)]

    def now(self, patience_seconds: float = _PATIENCE_SECONDS) -> list[int]:
        """In the order of ``topics``. Asks again while a partition has no leader."""
        deadline = time.monotonic() + patience_seconds
        while True:
            found: dict[tuple[str, int], int] = {}
            for address in self._brokers:
                found |= self._led_by(address)
            missing = [partition for partition in self._partitions if partition not in found]
            if not missing:
                return [found[partition] for partition in self._partitions]
            assert time.monotonic() < deadline, f"nobody leads {len(missing)} partitions: {missing[:5]} …"
            time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        for connection in filter(None, self._brokers.values()):
            connection.close()

    def _led_by(self, address: tuple[str, int]) -> dict[tuple[str, int], int]:
        """What a broker leads; nothing while it is not there."""
        try:
            connection = self._brokers[address] or dial("it", address, self._security, _ANSWER_SECONDS)
            self._brokers[address] = connection
            version = connection.version(offsets.API_KEY, *offsets.VERSIONS)
            request = offsets.offsets_request(version, self._partitions, offsets.LATEST)
            answers = offsets.offsets_of(connection.ask(request, ListOffsetsResponse))
        except StraitError:
            if (broken := self._brokers[address]) is not None:
                broken.close()
                self._brokers[address] = None
            return {}
        return {partition: offset for partition, (error, offset) in answers.items() if not error}
