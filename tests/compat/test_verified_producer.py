"""An address comes to belong to another cluster, and back, without a pause: the writer's records reach their own only."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from strait.config import naming
from strait.config.client_properties import CLUSTER_ID
from strait.kafka.admin import Admin
from strait.kafka.reading import read_topic
from strait.state.topics import ensure_state_topics
from strait.state.writer import StateWriter
from support.fixtures.waiting import eventually
from support.kafka.kfake import OtherBrokers, kfake
from support.model.reports import plain_run

pytestmark = pytest.mark.broker

LINK = "l"
ROUNDS = 3


class Address:
    """One address, at which one of several clusters answers. It tells its own port instead of theirs."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.connections = 0
        self._behind = 0
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def belong_to(self, cluster: OtherBrokers) -> None:
        self._behind = int(cluster.bootstrap.rpartition(":")[2])
        self.connections = 0
        for one in self._open:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def close(self) -> None:
        self._server.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                behind = self._behind
                broker = socket.create_connection(("127.0.0.1", behind))
                self._open += [client, broker]
                self.connections += 1
                ports = behind.to_bytes(4), self.port.to_bytes(4)
                for ends in ((client, broker, b"", b""), (broker, client, *ports)):
                    threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket, told: bytes, instead: bytes) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data.replace(told, instead) if told else data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def address() -> Iterator[Address]:
    found = Address()
    yield found
    found.close()


def keys(cluster: OtherBrokers) -> list[bytes | None]:
    return [message.key() for message in read_topic(cluster.client_properties, "b", naming.map_topic(LINK))]


def test_records_reach_the_writers_own_cluster_only_all_of_them_and_in_order(address: Address) -> None:
    with kfake({}) as own, kfake({}) as stranger:
        for cluster in (own, stranger):
            ensure_state_topics(Admin(cluster.client_properties, "b"), LINK, 1)
        address.belong_to(own)
        expected = Admin(own.client_properties, "b").cluster_id
        writer = StateWriter(
            {"bootstrap.servers": f"127.0.0.1:{address.port}", CLUSTER_ID: expected, "log_level": "3"}, "b", LINK
        )
        written: list[int] = []
        acked: list[tuple[int, object]] = []

        def write() -> None:
            for number in range(len(written), len(written) + 10):
                writer.write_run(
                    plain_run(partition=number), lambda error, number=number: acked.append((number, error))
                )
                written.append(number)

        def until(met: object, what: str) -> None:
            def polled() -> bool:
                writer.poll()
                time.sleep(0.001)
                return bool(met())  # type: ignore[operator]

            eventually(polled, what=what)

        write()
        until(lambda: len(acked) == len(written), "the first ones")
        for _ in range(ROUNDS):
            address.belong_to(stranger)
            write()
            until(lambda: address.connections >= 3, "attempts at the stranger")
            address.belong_to(own)
            write()
            until(lambda: len(acked) == len(written), "all of them")
        assert acked == [(number, None) for number in written]
        assert len(set(keys(own))) == len(written) and keys(stranger) == []
