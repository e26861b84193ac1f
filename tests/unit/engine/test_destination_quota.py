"""How a destination's quota is kept to: the real pace against a broker that counts as Kafka does, and the order in which
partitions get their turns."""

import math
from collections import deque
from itertools import pairwise

import pytest

from strait.engine.destination_quota import DestinationQuota
from strait.engine.sender import SPARSE_BYTES, _Turns
from support.model.partitions import placed

SAMPLES = 11
REQUEST_BYTES = 4 << 20
BATCH_BYTES = 1 << 17


class Quota:
    """Kafka's `Rate` over samples of a second, and `ClientQuotaManager.throttleTime`."""

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        self._samples: deque[tuple[int, int]] = deque()

    def throttle_ms(self, size: int, now: float) -> int:
        second = int(now)
        self._samples.append((second, size))
        while self._samples[0][0] <= second - SAMPLES:
            self._samples.popleft()
        window = SAMPLES - 1 + now - second
        mean = sum(size for _, size in self._samples) / window
        return max(0, int((mean - self.bytes_per_second) / self.bytes_per_second * window * 1000))


def sent_by(
    rate: float, seconds: float, *, until: float = math.inf, others: float = 0.0
) -> list[tuple[float, int, int]]:
    """When how much goes out, over which line, of an endless backlog over two lines to a broker with a quota, which ends at
    ``until``. ``others``: part of the quota that other clients of the link use."""
    quota, pace = Quota(rate), DestinationQuota()
    now, free_at = 0.0, [0.0, 0.0]
    sent: list[tuple[float, int, int]] = []
    while now < seconds:
        for line in range(2):
            if now < free_at[line] or pace.wait(line, now):
                continue
            size = max(BATCH_BYTES, pace.request_bytes(REQUEST_BYTES, now))
            pace.sent(line, size, now)
            throttle_ms = quota.throttle_ms(int(size / (1 - others)), now) if now < until else 0
            pace.answered(size, throttle_ms, now)
            free_at[line] = now + max(0.005, throttle_ms / 1000)
            sent.append((now, size, line))
        now += 0.001
    return sent


def longest_silence(sent: list[tuple[float, int, int]], since: float, line: int) -> float:
    times = [at for at, _, over in sent if at >= since and over == line]
    return max(then - at for at, then in pairwise(times))


@pytest.mark.parametrize(("rate", "others"), [(7.5e6, 0.0), (1e6, 0.0), (50e6, 0.0), (7.5e6, 0.5)])
def test_after_one_burst_all_that_the_quota_gives_is_used_and_nothing_waits_for_long(
    rate: float, others: float
) -> None:
    sent = sent_by(rate, 200.0, others=others)
    assert sum(size for at, size, _ in sent if at >= 22.0) >= 0.9 * rate * (1 - others) * 178.0
    for line in range(2):  # neither leaves the other one out
        assert longest_silence(sent, 22.0, line) < 1.1


def test_without_a_quota_nothing_is_held_back() -> None:
    pace = DestinationQuota()
    pace.sent(0, 1 << 30, 5.0)
    pace.answered(1 << 30, 0, 5.0)
    assert pace.wait(1, 5.0) == pace.wait(0, 5.0) == 0
    assert pace.request_bytes(REQUEST_BYTES, 5.0) == REQUEST_BYTES


def test_a_quota_that_is_lifted_is_forgotten_within_a_minute_or_so() -> None:
    sent = sent_by(5e6, 200.0, until=100.0)
    assert sum(size for at, size, _ in sent if at >= 195.0) > 5 * 100e6


def test_one_throttled_small_request_holds_no_large_one_up_for_longer_than_the_window() -> None:
    """Other clients used the quota at that moment, so the estimate is far too low."""
    pace = DestinationQuota()
    pace.sent(0, 300, 100.0)
    pace.answered(300, 1000, 100.02)
    assert pace.wait(0, 101.1) == 0.0
    pace.sent(0, 1 << 20, 101.1)
    pace.answered(1 << 20, 0, 101.2)
    assert pace.wait(0, 101.2) < 11.0
    pace.answered(0, 30_000, 101.3)
    assert pace.wait(0, 101.3) == pytest.approx(30.0), "as long as the broker says"


def test_a_line_that_has_nothing_to_send_any_more_holds_no_other_up() -> None:
    pace = DestinationQuota()
    for at in range(2):
        pace.answered(10 << 20, 1000, at)
    pace.sent(0, 1 << 20, 13.0)
    first = 13.0 + pace.wait(1, 13.0)
    then = 13.0 + pace.wait(0, 13.0)
    assert then == first > 13.0
    assert 0 < pace.wait(0, first) <= 0.02  # it is the other one's turn
    assert pace.wait(1, first) == 0
    assert pace.wait(0, first + 0.03) == 0


def test_what_trickles_goes_before_any_backlog_and_stops_none() -> None:
    turns = _Turns()
    backlog, trickles = ([placed(number=number + first) for number in range(3)] for first in (0, 3))
    for partition in backlog + trickles:
        partition.queue.bytes = SPARSE_BYTES if partition in backlog else SPARSE_BYTES - 1
        partition.queue.in_flight, partition.queue.in_flight_bytes = 1, 1
        turns.add(partition)
    assert turns.next() is trickles[0]
    assert turns.next(sparse=False) is backlog[0]
    assert [turns.next() for _ in range(len(turns))] == [*trickles[1:], *backlog[1:]]
