"""One connection that dies in silence tells on the others to its cluster. The sockets are real, the time is not."""

import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from strait.net.buffers import Buffer, BufferPool
from strait.net.channel import ANSWER_SECONDS, MOST_PATIENCE, NO_REPLY, Channel
from strait.net.cluster_client import ClusterClient, Line
from strait.net.event_loop import Loop
from strait.net.handshake import Connection

FIRST_CORRELATION = (1 << 20) + 1


class Known:
    """A cluster with channels to some of its brokers, already dialled."""

    def __init__(self, *lines: Line) -> None:
        self.skipped_seconds = 0.0
        self.lost: dict[Line, str] = {}
        self.loop = Loop()
        self.cluster = ClusterClient(self.loop, BufferPool(1 << 20), "it", {"bootstrap.servers": "broker:1"})
        self.peers: dict[Line, socket.socket] = {}
        self.channels: dict[Line, Channel] = {}
        for line in lines:
            self.connect(line)

    def connect(self, line: Line) -> None:
        """Anew, where there was a connection before."""
        if line in self.peers:
            self.peers[line].close()
        ours, self.peers[line] = socket.socketpair()
        self.cluster._dialled(line, Connection("it", ("broker", 1), ours))
        self.channels[line] = self.cluster._channels[line]

    def send(self, line: Line) -> None:
        self.channels[line].send(
            0, 9, [b"hello"],
            on_reply=Buffer.release,
            on_lost=lambda cause: self.lost.update({line: cause}),
        )  # fmt: skip

    def reply(self, line: Line) -> None:
        """To its first request."""
        self.peers[line].sendall((4).to_bytes(4, "big") + FIRST_CORRELATION.to_bytes(4, "big"))
        self.loop.run_once(0.1)

    def pass_seconds(self, seconds: float) -> None:
        for _ in range(int(seconds * 4)):
            self.skipped_seconds += 0.25
            self.loop.run_once(0.0)
            self.cluster.expire()

    @property
    def closed(self) -> set[Line]:
        return {line for line, channel in self.channels.items() if channel.closed}

    def close(self) -> None:
        self.cluster.close()
        for peer in self.peers.values():
            peer.close()
        self.loop.close()


ONE, TWO, THREE, FOUR = (Line(node) for node in (1, 2, 3, 4))
ONE_QUIET = Line(1, -1)
ONE_MORE = Line(1, 1)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Iterator[Known]:
    found = Known(ONE, ONE_QUIET, TWO, THREE, FOUR)
    monkeypatch.setattr(
        "strait.net.event_loop.time", SimpleNamespace(monotonic=lambda: time.monotonic() + found.skipped_seconds)
    )
    yield found
    found.close()


def test_what_was_not_heard_since_is_given_up_with_it_unless_it_is_waited_for(known: Known) -> None:
    known.send(ONE)
    known.send(TWO)
    known.send(FOUR)
    known.send(THREE)
    known.send(ONE_QUIET)
    known.channels[THREE].patience = known.channels[ONE_QUIET].patience = 4.0
    known.reply(FOUR)  # the last that came before all were forgotten
    known.pass_seconds(ANSWER_SECONDS - 1.0)
    known.reply(TWO)
    assert known.closed == set()
    known.pass_seconds(1.5)
    assert known.closed == {ONE, ONE_QUIET, FOUR}  # two was heard meanwhile, three is known to be slow
    assert known.lost == {ONE: NO_REPLY, ONE_QUIET: "as silent as another connection to it"}


def test_nothing_is_asked_over_a_connection_that_may_have_died(known: Known) -> None:
    """It would be lost with it, though the broker can be asked over another one, or soon over a new one."""
    known.send(ONE)
    known.send(ONE_QUIET)
    known.send(TWO)
    assert known.cluster.prompt_channel(ONE.node) is not None
    known.pass_seconds(ANSWER_SECONDS - 0.5)
    assert known.closed == set()
    assert known.cluster.prompt_channel(ONE.node) is None
    assert known.cluster.prompt_channel(THREE.node) is known.channels[THREE]  # nothing is waited for
    known.connect(ONE_MORE)
    assert known.cluster.prompt_channel(ONE.node) is known.channels[ONE_MORE]
    known.reply(TWO)
    assert known.cluster.prompt_channel(TWO.node) is known.channels[TWO]


def test_what_is_asked_goes_where_the_fewest_wait(known: Known) -> None:
    """A broker serves one request of a connection after the other, and may be seconds behind on one of them."""
    known.send(ONE)
    known.send(ONE)
    known.pass_seconds(1.0)
    known.reply(ONE)  # the one that was heard last
    known.pass_seconds(0.25)
    assert known.cluster.prompt_channel(ONE.node) is known.channels[ONE_QUIET]


def test_a_connection_that_is_cut_says_nothing_of_the_others(known: Known) -> None:
    known.send(ONE)
    known.peers[ONE].close()
    known.loop.run_once(0.1)
    known.pass_seconds(1.0)
    assert known.closed == {ONE}


def test_a_broker_that_does_not_answer_in_time_again_gets_more_time_until_it_answers_in_time(known: Known) -> None:
    """Else a request that takes longer than the time-out would be sent for ever. The first time the connection has
    died."""

    def waited() -> float:
        known.send(ONE)
        begun = known.skipped_seconds
        while not known.channels[ONE].closed:
            known.pass_seconds(0.25)
        known.connect(ONE)
        return (known.skipped_seconds - begun) / ANSWER_SECONDS

    assert [waited() for _ in range(6)] == pytest.approx([1, 1, 2, 4, 8, MOST_PATIENCE], abs=0.1)
    known.send(ONE)
    known.pass_seconds(ANSWER_SECONDS + 0.5)
    known.reply(ONE)  # it is here, but it took longer than it should have
    assert waited() == pytest.approx(MOST_PATIENCE, abs=0.1)
    known.send(ONE)
    known.reply(ONE)
    assert waited() == pytest.approx(1, abs=0.1)
