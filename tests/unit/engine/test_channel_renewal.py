"""A channel that goes on with another connection keeps the order of its requests."""

import socket
import struct

import pytest

from strait.net.buffers import Buffer, BufferPool
from strait.net.channel import Channel
from strait.net.event_loop import Loop
from strait.net.handshake import Connection


class Peer:
    """The broker's end of a connection."""

    def __init__(self) -> None:
        ours, self.socket = socket.socketpair()
        self.socket.settimeout(0.0)
        self.connection = Connection("it", ("broker", 9092), ours)

    def requests(self) -> list[bytes]:
        """The bodies of the requests that have arrived."""
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return []
        found = []
        while data:
            (size,) = struct.unpack_from(">i", data)
            found.append(data[4 : 4 + size][-1:])
            data = data[4 + size :]
        return found

    def reply(self, correlation: int) -> None:
        self.socket.sendall(struct.pack(">ii", 4, correlation))

    @property
    def left(self) -> bool:
        """Whether the client has closed it."""
        try:
            return self.socket.recv(1) == b""
        except BlockingIOError:
            return False


class Client:
    """A channel, and what came of its requests."""

    def __init__(self, first: Peer) -> None:
        self.loop = Loop()
        self.events: list[str] = []
        self.channel = Channel(self.loop, BufferPool(1 << 20), first.connection, lambda _: self.events.append("closed"))

    def send(self, body: bytes) -> None:
        def take(frame: Buffer) -> None:
            frame.release()
            self.events.append(f"reply {body.decode()}")

        self.channel.send(
            0, 9, [body],
            on_reply=take,
            on_lost=lambda _: self.events.append(f"lost {body.decode()}"),
            on_sent=lambda: self.events.append(f"sent {body.decode()}"),
        )  # fmt: skip

    def step(self) -> None:
        self.loop.run_once(0.05)


FIRST_CORRELATION = (1 << 20) + 1


def test_requests_wait_for_the_replies_before_them_and_then_go_over_the_next_connection() -> None:
    old, new = Peer(), Peer()
    client = Client(old)
    client.send(b"a")
    client.send(b"b")
    client.channel.go_on_with(new.connection)
    client.send(b"c")
    assert old.requests() == [b"a", b"b"]
    assert client.channel.unsent_bytes > 0, "what waits counts as unsent, so that senders hold back"
    old.reply(FIRST_CORRELATION)
    client.step()
    assert new.requests() == []
    old.reply(FIRST_CORRELATION + 1)
    client.step()
    assert old.left
    assert new.requests() == [b"c"]
    assert client.channel.unsent_bytes == 0
    new.reply(FIRST_CORRELATION + 2)
    client.step()
    assert client.events == ["sent a", "sent b", "reply a", "reply b", "sent c", "reply c"]


def test_an_idle_channel_changes_over_at_once() -> None:
    old, new = Peer(), Peer()
    client = Client(old)
    client.channel.go_on_with(new.connection)
    client.send(b"a")
    assert old.left
    assert new.requests() == [b"a"]


def test_every_request_is_lost_once_when_the_old_connection_dies_meanwhile() -> None:
    old, new = Peer(), Peer()
    client = Client(old)
    client.send(b"a")
    client.channel.go_on_with(new.connection)
    client.send(b"b")
    old.socket.close()
    client.step()
    assert client.events == ["sent a", "sent b", "lost a", "lost b", "closed"]
    assert new.left, "nobody will ever use it"


@pytest.mark.parametrize("pending", [0, 1])
def test_a_second_connection_in_a_row_replaces_one_not_used_yet(pending: int) -> None:
    old, unused, new = Peer(), Peer(), Peer()
    client = Client(old)
    for _ in range(pending):
        client.send(b"a")
    client.channel.go_on_with(unused.connection)
    client.channel.go_on_with(new.connection)
    for number in range(pending):
        old.reply(FIRST_CORRELATION + number)
        client.step()
    client.send(b"b")
    assert unused.left
    assert new.requests() == [b"b"]
