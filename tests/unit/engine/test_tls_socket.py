"""TLS by memory keeps a stream what it is, however the kernel cuts it, against OpenSSL's ordinary socket."""

import random
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from strait.net.tls_context import broker_context
from strait.net.tls_socket import TlsSocket
from support.security.pki import Authority

AUTHORITY = Authority("an authority")


@contextmanager
def pair(folder: Path, trusted: Authority = AUTHORITY) -> Iterator[tuple[TlsSocket, ssl.SSLSocket]]:
    """Ours, which has not shaken hands yet, and the broker's."""
    AUTHORITY.issue("broker").write(folder / "broker.pem", folder / "broker.key")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(folder / "broker.pem", folder / "broker.key")
    left, right = socket.socketpair()
    context = broker_context("cluster a", {"ssl.ca.pem": trusted.pem})
    ours = TlsSocket(left, context, "127.0.0.1")
    theirs = server.wrap_socket(right, server_side=True, do_handshake_on_connect=False)
    with ours, theirs:
        yield ours, theirs


def in_thread(work) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("seed", range(3))
def test_both_directions_carry_every_byte_in_order(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    content = rng.randbytes(3 << 20)
    echoed = bytearray()
    with pair(tmp_path) as (ours, theirs):

        def echo() -> None:
            theirs.do_handshake()
            total = 0
            while total < len(content):
                part = theirs.recv(rng.randrange(1, 100_000))
                total += len(part)
                theirs.sendall(part)

        thread = in_thread(echo)
        ours.shake_hands()
        ours.setblocking(False)
        sent, room, chunk = 0, memoryview(bytearray(50_000)), b""
        while len(echoed) < len(content):
            chunk = chunk or content[sent : sent + rng.randrange(1, 400_000)]
            try:
                if chunk:
                    assert ours.send(chunk) == len(chunk)
                    sent, chunk = sent + len(chunk), b""
            except BlockingIOError:
                pass  # the same chunk again
            with suppress(BlockingIOError):
                echoed += room[: ours.recv_into(room[: rng.randrange(1, len(room))])]
        thread.join()
    assert bytes(echoed) == content


@pytest.mark.parametrize("politely", [True, False])
def test_the_end_of_the_stream_is_nothing_more(tmp_path: Path, politely: bool) -> None:
    with pair(tmp_path) as (ours, theirs):

        def serve() -> None:
            theirs.do_handshake()
            theirs.sendall(b"last words")
            if politely:
                theirs.settimeout(0.1)
                with pytest.raises(TimeoutError):  # we do not answer a farewell
                    theirs.unwrap()
            theirs.close()

        thread = in_thread(serve)
        ours.shake_hands()
        thread.join()
        assert ours.recv(100) == b"last words"
        assert ours.recv(100) == b""


def test_a_broker_that_is_not_trusted_is_told_so(tmp_path: Path) -> None:
    heard: list[str] = []
    with pair(tmp_path, trusted=Authority("another")) as (ours, theirs):

        def serve() -> None:
            try:
                theirs.do_handshake()
                theirs.recv(1)
            except ssl.SSLError as error:
                heard.append(error.reason)

        thread = in_thread(serve)
        with pytest.raises(ssl.SSLCertVerificationError):
            ours.shake_hands()
        thread.join()
    assert heard == ["TLSV1_ALERT_UNKNOWN_CA"]


def test_a_broker_that_hangs_up_is_an_error(tmp_path: Path) -> None:
    with pair(tmp_path) as (ours, theirs):
        theirs.close()
        with pytest.raises(OSError, match=r"closed the connection|Broken pipe"):
            ours.shake_hands()
