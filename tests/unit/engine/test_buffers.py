"""The memory of a slot."""

import random

import pytest

from strait.engine.fetcher import Fetcher
from strait.net.buffers import SMALL_BYTES, BufferPool


@pytest.mark.parametrize("seed", range(20))
def test_what_is_used_and_expected_never_exceeds_the_budget(seed: int) -> None:
    rng = random.Random(seed)
    budget = 32 << 20
    pool = BufferPool(budget)
    share = Fetcher.share_of(budget, fetchers=3)
    held = []
    for _ in range(500):
        if rng.random() < 0.5 and (room := pool.expect(share)):
            pool.expect_no_more(room)
            frame = pool.take(rng.randrange(1, share + 1))
            if seed % 2:  # its batches are rebuilt, and then it is let go
                held.append(pool.adopt(bytearray(frame.size)))
                assert pool.used_bytes <= budget
                frame.release()
            else:
                held.append(frame)
        elif held:
            held.pop(rng.randrange(len(held))).release()
        assert pool.used_bytes <= budget
    for buffer in held:
        buffer.release()
    assert pool.used_bytes == 0


def test_memory_is_given_back_with_the_last_hold() -> None:
    pool = BufferPool(1 << 20)
    buffer = pool.take(SMALL_BYTES * 2)
    buffer.hold()
    buffer.release()
    assert pool.used_bytes == SMALL_BYTES * 2
    buffer.release()
    assert pool.used_bytes == 0


def test_memory_of_a_big_frame_is_used_again() -> None:
    pool = BufferPool(1 << 20)
    first = pool.take(SMALL_BYTES + 1)
    memory = first.memory
    first.release()
    assert pool.take(SMALL_BYTES + 5).memory is memory


def test_a_batch_larger_than_the_budget_is_taken_all_the_same() -> None:
    pool = BufferPool(1 << 20)
    assert not pool.expect(2 << 20)
    assert pool.take(2 << 20).size == 2 << 20


@pytest.mark.parametrize("fetchers", [1, 3, 10, 50])
def test_all_fetchers_can_wait_at_once(fetchers: int) -> None:
    budget = 128 << 20
    share = Fetcher.share_of(budget, fetchers)
    pool = BufferPool(budget)
    assert all(pool.expect(share) for _ in range(fetchers))
    assert share & (share - 1) == 0


@pytest.mark.parametrize("size", [1, SMALL_BYTES, SMALL_BYTES + 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 16 << 20])
def test_memory_of_any_size_can_be_written_to_its_last_byte(size: int) -> None:
    view = BufferPool(64 << 20).take(size).view()
    assert len(view) == size
    view[size - 1 :] = b"x"
    assert view[size - 1] == ord("x")


def test_memory_that_the_pool_forgets_lives_on_under_a_view() -> None:
    pool = BufferPool(4 << 20)
    first = pool.take(2 << 20)
    view = first.view()
    view[:4] = b"mine"
    first.release()
    second = pool.take(4 << 20)  # no room for both: the first one's memory is dropped
    second.view()[:4] = b"else"
    assert bytes(view[:4]) == b"mine"
