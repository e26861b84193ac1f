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
    size = Fetcher.share_of(budget, fetchers=3)
    shares = [pool.share() for _ in range(3)]
    for share in shares[: seed % 4]:
        share.guaranteed_bytes = budget // 6
    held = []
    for _ in range(500):
        share = rng.choice(shares)
        if rng.random() < 0.5 and (room := share.expect(size)):
            share.expect_no_more(room)
            frame = pool.take(rng.randrange(1, size + 1))
            share.charge(frame)
            if seed % 2:  # its batches are rebuilt, and then it is let go
                held.append(pool.adopt(bytearray(frame.size), frame))
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
    assert [share.held_bytes for share in shares] == [0, 0, 0]


def test_nobody_gets_what_another_is_guaranteed() -> None:
    pool = BufferPool(8 << 20)
    greedy, idle = pool.share(), pool.share()
    greedy.guaranteed_bytes = idle.guaranteed_bytes = 2 << 20
    taken = 0
    while greedy.expect(1 << 20):
        taken += 1
    assert taken == 6, "all but what is guaranteed to the other"
    assert idle.expect(1 << 20)
    assert idle.expect(1 << 20)
    assert not idle.expect(1 << 20)


def test_who_holds_less_and_waits_goes_first() -> None:
    pool = BufferPool(4 << 20)
    much, little = pool.share(), pool.share()
    rooms = [much.expect(1 << 20) for _ in range(3)]
    assert not little.expect(2 << 20), "there is not so much now"
    assert not much.expect(1 << 20), "what is free is kept for the one that waits"
    much.expect_no_more(rooms.pop())
    assert little.expect(2 << 20)
    much.expect_no_more(rooms.pop())
    assert much.expect(1 << 20), "nobody waits"


def test_what_does_not_borrow_gets_no_more_than_its_part() -> None:
    pool = BufferPool(4 << 20)
    share = pool.share(borrows=False)
    share.guaranteed_bytes = 1 << 20
    assert share.expect(1 << 20)
    assert not share.expect(1)
    assert not share.waits, "others need not wait for it"


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
    assert not pool.share().expect(2 << 20)
    assert pool.take(2 << 20).size == 2 << 20


@pytest.mark.parametrize("fetchers", [1, 3, 10, 50])
def test_all_fetchers_can_wait_at_once(fetchers: int) -> None:
    budget = 128 << 20
    size = Fetcher.share_of(budget, fetchers)
    pool = BufferPool(budget)
    assert all(pool.share().expect(size) for _ in range(fetchers))
    assert size & (size - 1) == 0


@pytest.mark.parametrize("rebuilds", [False, True])
@pytest.mark.parametrize(("budget_mib", "guaranteed_mib"), [(16, [8, 1]), (128, [64, 1, 1]), (16, [1] * 8)])
def test_a_size_that_fits_gets_room_if_nothing_is_held(
    budget_mib: int, guaranteed_mib: list[int], rebuilds: bool
) -> None:
    pool = BufferPool(budget_mib << 20)
    shares = [pool.share() for _ in guaranteed_mib]
    for share, part in zip(shares, guaranteed_mib, strict=True):
        share.guaranteed_bytes = part << 20
    if rebuilds:
        pool.adopt(bytearray(1)).release()
    largest = guaranteed_mib[0] << 20
    size = shares[0].fitting(largest)
    assert shares[0].fitting(100) == 100
    assert shares[0].expect(size) == size * (1 + rebuilds)
    assert size == largest or (rebuilds and 2 * size == largest), "no smaller than it must be"


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
