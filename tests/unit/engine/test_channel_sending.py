"""Requests of many pieces go out whole and in order, however little the kernel takes at a time."""

import random
import socket
import struct
import time

import pytest

from strait.net import event_loop as loops
from strait.net.buffers import Buffer, BufferPool
from strait.net.channel import Channel, request_head
from strait.net.event_loop import STALL_SECONDS, Loop
from strait.net.handshake import Connection

PIECES = 1500  # more than one call to the kernel takes
FIRST_CORRELATION = (1 << 20) + 1


def test_requests_arrive_whole_and_their_memory_is_free_once_the_kernel_has_them() -> None:
    chance = random.Random(5)
    bodies = [[chance.randbytes(chance.randrange(1, 900)) for _ in range(PIECES)] for _ in range(3)]
    frames = []
    for number, body in enumerate(bodies):
        frame = request_head(0, 9, FIRST_CORRELATION + number) + b"".join(body)
        frames.append(struct.pack(">i", len(frame)) + frame)
    loop = Loop()
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
    theirs.setblocking(False)
    channel = Channel(loop, BufferPool(1 << 20), Connection("it", ("broker", 1), ours), lambda _: None)
    sent: list[tuple[int, int]] = []  # request, and what the kernel had not taken then
    taken = bytearray()

    def free(number: int) -> None:
        sent.append((number, channel.unsent_bytes))

    try:
        for number, body in enumerate(bodies):
            channel.send(
                0,
                9,
                body,
                on_reply=Buffer.release,
                on_lost=lambda _: None,
                on_sent=lambda number=number: free(number),  # type: ignore[misc]
            )
        assert not sent
        assert channel.unsent_bytes > sum(map(len, frames)) - (1 << 16)
        while len(taken) < sum(map(len, frames)):
            try:
                taken += theirs.recv(chance.randrange(1, 20_000))
            except BlockingIOError:
                loop.run_once(0.01)
        assert bytes(taken) == b"".join(frames)
        assert [number for number, _ in sent] == [0, 1, 2]
        assert [left <= sum(map(len, frames[number + 1 :])) for number, left in sent] == [True] * 3
        assert channel.unsent_bytes == 0
    finally:
        channel.close("the test ends")
        theirs.close()
        loop.close()


def test_what_is_sent_over_a_closed_channel_is_lost_at_once() -> None:
    """Whoever waited between two requests may hold it still, and would wait for ever."""
    loop = Loop()
    ours, theirs = socket.socketpair()
    channel = Channel(loop, BufferPool(1 << 20), Connection("it", ("broker", 1), ours), lambda _: None)
    channel.close("the test ends")
    lost: list[str] = []
    sent: list[int] = []
    channel.send(0, 9, [b"late"], on_reply=Buffer.release, on_lost=lost.append, on_sent=lambda: sent.append(1))
    assert (lost, sent) == ([], [1])
    loop.run_once(0.0)
    theirs.close()
    loop.close()
    assert lost == ["the connection is closed"]


def test_a_reply_that_names_what_was_not_asked_for_costs_its_connection_alone() -> None:
    loop = Loop()
    ours, theirs = socket.socketpair()
    channel = Channel(loop, BufferPool(1 << 20), Connection("it", ("broker", 1), ours), lambda _: None)
    lost: list[str] = []

    def take(frame: Buffer) -> None:
        frame.release()
        raise KeyError(("other", 0))

    channel.send(0, 9, [b"asked"], on_reply=take, on_lost=lost.append)
    loop.run_once(0.0)
    theirs.sendall(struct.pack(">ii", 4, FIRST_CORRELATION))
    loop.run_once(1.0)
    theirs.close()
    loop.close()
    assert channel.closed
    assert lost == ["the reply names what was not asked for, or lacks what was: KeyError(('other', 0))"]


class Clock:
    """``time`` for the loop; ``ahead`` is how long the process slept."""

    ahead = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead


@pytest.mark.parametrize("asleep", ["between turns", "within a turn"])
def test_after_the_process_stood_still_nothing_that_was_queued_is_written(
    monkeypatch: pytest.MonkeyPatch, asleep: str
) -> None:
    """What waits for the kernel is as old as the sleep: others may have gone on, and the broker may have forgotten the
    link."""
    clock = Clock()
    monkeypatch.setattr(loops, "time", clock)
    loop = Loop()
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
    theirs.setblocking(False)
    closed: list[str] = []
    channel = Channel(loop, BufferPool(1 << 20), Connection("it", ("broker", 1), ours), closed.append)
    loop.on_stall = lambda _: channel.close("the slot stood still")
    lost: list[str] = []
    channel.send(0, 9, [bytes(1 << 20)], on_reply=Buffer.release, on_lost=lost.append)
    loop.run_once(0.0)
    if asleep == "between turns":
        clock.ahead = STALL_SECONDS + 10.0
    else:
        loop.call_from_thread(
            lambda: None
        )  # the turn begins with this, since it was there first; then the process sleeps
        monkeypatch.setattr(loop, "_drain_wake_pipe", lambda: setattr(clock, "ahead", STALL_SECONDS + 10.0))
    assert 0 < drained(theirs) < 1 << 20
    for _ in range(3):
        loop.run_once(0.0)
    assert drained(theirs) == 0
    assert closed and lost
    theirs.close()
    loop.close()


def drained(sock: socket.socket) -> int:
    size = 0
    try:
        while taken := len(sock.recv(1 << 16)):
            size += taken
    except BlockingIOError:
        pass
    return size
