"""One blocking connection to a broker for hand-made requests: what the wire code makes and reads, without an engine."""

import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from strait.embedded.kafka import Cluster
from strait.kafka.admin import Admin
from strait.model import topic_id_bytes
from strait.net.addresses import parse_addresses
from strait.net.handshake import dial
from strait.net.security import Security
from strait.wire import fetch, produce
from strait.wire.primitives import Topic

FETCH_VERSION = fetch.VERSIONS[1]
PRODUCE_VERSION = produce.VERSIONS[1]


class RawClient:
    """Speaks to the first broker of ``cluster``, which must lead what is asked for."""

    def __init__(self, cluster: Cluster) -> None:
        properties = cluster.client_properties
        self._cluster = cluster
        address = parse_addresses("it", properties["bootstrap.servers"])[0]
        self._connection = dial("it", address, Security("it", properties), timeout_seconds=30.0)
        self._correlation = 100

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def ask(self, api_key: int, version: int, body: bytes) -> memoryview:
        """The reply's frame, header included."""
        self._correlation += 1
        head = struct.pack(">hhih", api_key, version, self._correlation, -1) + b"\0"
        sock = self._connection.socket
        sock.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        (size,) = struct.unpack(">i", self._exactly(4))
        return memoryview(bytearray(self._exactly(size)))

    def fetch_many(
        self,
        topics: Sequence[tuple[Topic, list[fetch.FetchPosition]]],
        *,
        isolation: int = fetch.READ_UNCOMMITTED,
        session: tuple[int, int] = fetch.NO_SESSION,
        forgotten: Sequence[tuple[Topic, list[int]]] = (),
        min_bytes: int = 0,
    ) -> tuple[int, int, list[fetch.Fetched]]:
        """(error of the whole request, session id, partitions)."""
        body = fetch.encode_request(
            FETCH_VERSION,
            topics,
            max_wait_ms=500,
            max_bytes=64 << 20,
            min_bytes=min_bytes,
            isolation=isolation,
            session=session,
            forgotten=forgotten,
        )
        frame = self.ask(fetch.API_KEY, FETCH_VERSION, body)
        error, _, fetched = fetch.decode_reply(FETCH_VERSION, frame)
        return error, fetch.session_id(frame), fetched

    def fetch_one(
        self, topic_id: bytes, partition: int, offset: int, *, isolation: int = fetch.READ_UNCOMMITTED
    ) -> fetch.Fetched:
        """One partition from ``offset`` on, as much as comes."""
        position = fetch.FetchPosition(partition, -1, offset, 64 << 20)
        error, _, (fetched,) = self.fetch_many([(topic_id, [position])], isolation=isolation)
        assert (error, fetched.error) == (0, 0)
        return fetched

    def append(self, topic_id: bytes, partition: int, batch: bytearray) -> produce.Produced:
        """Append one batch."""
        pieces = produce.encode_request({topic_id: [(partition, memoryview(batch))]}, 30_000)
        frame = self.ask(produce.API_KEY, PRODUCE_VERSION, b"".join(pieces))
        _, (produced,) = produce.decode_reply(PRODUCE_VERSION, frame)
        return produced

    def topic_id(self, topic: str) -> bytes:
        """The id under which the cluster has the topic."""
        observed = Admin(self._cluster.client_properties, "it").observe(topic.__eq__)
        return topic_id_bytes(observed.topics[topic].topic_id)

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._connection.socket.recv(size - len(data))
            assert piece, "the broker closed the connection"
            data += piece
        return bytes(data)
