"""Frames out of a stream that arrives in any pieces."""

import random
import struct

import pytest

from strait.errors import ProtocolError
from strait.net.buffers import Buffer, BufferPool
from strait.net.frames import AHEAD_BYTES, Frames


def feed(frames: Frames, data: bytes, at_most: int) -> list[Buffer]:
    """What becomes whole when the kernel hands out at most so many bytes a time."""
    taken: list[Buffer] = []
    while data:
        space = frames.space()
        count = min(len(space), len(data), at_most)
        space[:count] = data[:count]
        data = data[count:]
        taken += frames.received(count)
    return taken


def framed(bodies: list[bytes]) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


@pytest.mark.parametrize("seed", range(60))
def test_frames_of_any_sizes_come_whole_and_in_order_through_any_pieces(seed: int) -> None:
    rng = random.Random(seed)
    around = (4, 5, 100, AHEAD_BYTES - 8, AHEAD_BYTES - 4, AHEAD_BYTES - 1, AHEAD_BYTES, AHEAD_BYTES + 1, 100_000)
    at_most = rng.choice((1, 3, 50, 5000, 1 << 20))
    count = rng.randrange(1, 60 if at_most > 3 else 4)  # a byte at a time takes a second for each MB
    bodies = [rng.randbytes(max(4, rng.choice(around) + rng.randrange(-3, 4))) for _ in range(count)]
    pool = BufferPool(64 << 20)
    frames = Frames(pool)
    taken = feed(frames, framed(bodies), at_most=at_most)
    assert [bytes(frame.view()) for frame in taken] == bodies
    assert frames.missing == 0
    for frame in taken:
        frame.release()
    assert pool.used_bytes == 0


def test_what_a_frame_lacks_is_known_and_its_memory_is_given_back_when_it_never_comes() -> None:
    pool = BufferPool(1 << 20)
    frames = Frames(pool)
    assert feed(frames, struct.pack(">i", 200_000) + bytes(70_000), at_most=1 << 20) == []
    assert frames.missing == 130_000
    assert len(frames.space()) == 130_000
    frames.drop()
    assert (frames.missing, pool.used_bytes) == (0, 0)


@pytest.mark.parametrize("size", [-1, 0, 3, (1 << 30) + 1])
def test_what_cannot_be_a_frame_is_refused_before_any_memory_is_taken(size: int) -> None:
    pool = BufferPool(1 << 20)
    with pytest.raises(ProtocolError, match=f"response of {size} bytes"):
        feed(Frames(pool), struct.pack(">i", size) + bytes(50), at_most=100)
    assert pool.used_bytes == 0


def test_many_small_frames_come_with_one_call() -> None:
    frames = Frames(BufferPool(1 << 20))
    data = framed([bytes(100)] * 30)
    assert len(frames.space()) >= len(data)
    assert len(feed(frames, data, at_most=len(data))) == 30
