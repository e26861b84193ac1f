"""A connection that has died in silence is told from one that is slow. The sockets are real, the time is not."""

import socket
import struct
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from strait.net.buffers import Buffer, BufferPool
from strait.net.channel import ANSWER_SECONDS, NO_REPLY, Channel
from strait.net.event_loop import Loop
from strait.net.handshake import Connection

FIRST_CORRELATION = (1 << 20) + 1
LARGE = bytes(64 << 20)  # more than a connection holds on its way


class Line:
    """A channel whose other end takes only what it is told to."""

    def __init__(self) -> None:
        self.skipped_seconds = 0.0
        self.lost: list[str] = []
        self.loop = Loop()
        with socket.create_server(("127.0.0.1", 0)) as server:
            ours = socket.create_connection(server.getsockname())
            self._peer, _ = server.accept()
        self._peer.setblocking(False)
        self._channel = Channel(self.loop, BufferPool(1 << 20), Connection("it", ("broker", 1), ours), lambda _: None)

    def send(self, body: bytes) -> None:
        self._channel.send(0, 0, [body], on_reply=Buffer.release, on_lost=self.lost.append)

    def pass_seconds(self, seconds: float, *, taking: int = 0) -> None:
        """In steps of a quarter, in each of which the other end takes so many bytes of what is on its way."""
        for _ in range(int(seconds * 4)):
            left = taking
            while left > 0 and not self._channel.closed:
                try:
                    left -= len(self._peer.recv(left))
                except BlockingIOError:
                    if not self._channel.unsent_bytes:
                        break
                self.loop.run_once(0.01)
            self.skipped_seconds += 0.25
            self.loop.run_once(0.0)
            self._channel.expire()

    def answer_slowly(self, seconds: float, data: bytes) -> None:
        """Some of ``data`` every quarter of a second, all of it in that time."""
        steps = int(seconds * 4)
        for step in range(steps):
            self._peer.sendall(data[len(data) * step // steps : len(data) * (step + 1) // steps])
            self.pass_seconds(0.25)

    def be_patient(self, seconds: float) -> None:
        self._channel.be_patient(seconds)

    def close(self) -> None:
        self._channel.close("the test ends")
        self._peer.close()
        self.loop.close()


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[Line]:
    found = Line()
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + found.skipped_seconds)
    monkeypatch.setattr("strait.net.event_loop.time", clock)
    yield found
    found.close()


def test_a_small_request_that_was_taken_and_not_answered_is_given_up(line: Line) -> None:
    line.send(b"hello")
    line.pass_seconds(ANSWER_SECONDS - 1, taking=1 << 20)
    assert line.lost == []
    line.pass_seconds(1.5)
    assert line.lost == [NO_REPLY]


def test_a_large_request_that_nobody_takes_is_given_up(line: Line) -> None:
    line.send(LARGE)
    line.pass_seconds(ANSWER_SECONDS + 0.5)
    assert line.lost == [NO_REPLY]


def test_a_large_request_that_is_taken_slowly_is_not(line: Line) -> None:
    line.send(LARGE)
    line.pass_seconds(4 * ANSWER_SECONDS, taking=1 << 20)
    assert line.lost == []
    line.pass_seconds(ANSWER_SECONDS + 0.5)
    assert line.lost == [NO_REPLY]


def test_a_large_reply_that_comes_slowly_is_waited_for(line: Line) -> None:
    """Less than what the loop is woken for comes within the time-out."""
    line.send(b"hello")
    line.answer_slowly(4 * ANSWER_SECONDS, struct.pack(">ii", 4 << 20, FIRST_CORRELATION) + bytes(1 << 20))
    assert line.lost == []
    line.pass_seconds(ANSWER_SECONDS + 0.5)
    assert line.lost == [NO_REPLY]


def test_small_requests_that_go_into_the_void_do_not_keep_a_connection(line: Line) -> None:
    for _ in range(20):
        if not line.lost:
            line.send(b"hello")
            line.pass_seconds(0.25, taking=1 << 20)
    assert set(line.lost) == {NO_REPLY}


def test_a_broker_that_throttles_is_waited_for(line: Line) -> None:
    line.send(b"hello")
    line.be_patient(10.0)
    line.pass_seconds(10.0 + ANSWER_SECONDS - 1)
    assert line.lost == []
    line.pass_seconds(2.0)
    assert line.lost == [NO_REPLY]
