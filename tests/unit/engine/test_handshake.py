"""Brokers that answer a handshake as none does: by single bytes, each of which arrives before a timeout, or wrongly."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from strait.errors import ClusterUnavailable, ProtocolError
from strait.net import handshake
from strait.net.handshake import dial
from strait.net.security import Security

TLS_RECORD = b"\x16\x03\x03\x40\x00"
"""The head of a handshake record of 16 KiB."""


@pytest.fixture(params=["PLAINTEXT", "SSL"])
def trickling(request: pytest.FixtureRequest) -> Iterator[tuple[str, tuple[str, int]]]:
    """A listener that announces a reply of 16 KiB, and needs hours for it."""
    ended = threading.Event()
    head = TLS_RECORD if request.param == "SSL" else (16 << 10).to_bytes(4)

    def trickle() -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):  # until the other side closes it
            connection.sendall(head)
            while not ended.wait(0.05):
                connection.sendall(b"\0")

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=trickle)
        thread.start()
        yield request.param, server.getsockname()
        ended.set()
        thread.join()


def test_a_broker_that_sends_too_slowly_is_given_up(
    trickling: tuple[str, tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "_SLOWEST_BYTES_PER_SECOND", 1 << 20)
    protocol, address = trickling
    with pytest.raises(ClusterUnavailable, match="the broker sends too slowly"):
        dial("b", address, Security("b", {"security.protocol": protocol}), 1.0)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"\0\0",
        b"\0\0\xff\xff\xff\xff\x0f" + b"\0" * 100,  # 4 billion requests
        b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\0\0\2" + b"\1" * 6 + b"\0" * 5 + b"\x7f" * 20,
    ],
)
def test_a_malformed_reply_is_an_error_of_the_broker(reply: bytes) -> None:
    frame = b"\0\0\0\1" + reply

    def answer() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1 << 16)
            connection.sendall(len(frame).to_bytes(4) + frame)
            connection.recv(1)  # until the other side closes it

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ProtocolError, match=r"broker 127.0.0.1:\d+: a ApiVersionsResponse is malformed"):
            dial("b", server.getsockname(), Security("b", {}))
        thread.join()
