"""Requests are as large as a broker takes, which it says only by closing the connection."""

from strait.engine.request_size import GROW_SECONDS, RequestSize

MOST = 4_000


def settled(takes: int, batch: int) -> tuple[int, int]:
    """The size of requests of full batches in the end, for a broker that takes so much; and the breaks until then."""
    size = RequestSize(MOST)
    for breaks in range(100):
        limit = size.limit(0.0)
        request = batch * max(1, -(-limit // batch))
        if request <= takes:
            size.answered(request)
            return request, breaks
        for _ in range(3):  # several were on their way
            size.lost(request, limit, 0.0)
    raise AssertionError("no request is ever taken")


def test_requests_shrink_until_the_broker_takes_them_down_to_one_batch() -> None:
    assert settled(takes=5_000, batch=900) == (4_500, 0)
    assert settled(takes=2_000, batch=900) == (1_800, 2)
    assert settled(takes=901, batch=900)[0] == 900


def test_a_broker_that_took_such_requests_has_only_died() -> None:
    size = RequestSize(MOST)
    size.answered(MOST)
    size.lost(MOST, size.limit(0.0), 0.0)
    assert size.limit(0.0) == MOST


def test_what_is_small_says_nothing_when_it_is_lost() -> None:
    size = RequestSize(MOST)
    size.lost(MOST // 2, size.limit(0.0), 0.0)
    assert size.limit(0.0) == MOST


def test_a_larger_request_is_tried_again_after_a_while() -> None:
    size = RequestSize(MOST)
    for _ in range(2):
        size.lost(MOST, size.limit(0.0), 0.0)
    assert size.limit(GROW_SECONDS - 1) == MOST // 4
    assert size.limit(GROW_SECONDS) == MOST // 2
    assert size.limit(GROW_SECONDS + 1) == MOST // 2
    assert size.limit(2 * GROW_SECONDS) == size.limit(9 * GROW_SECONDS) == MOST
