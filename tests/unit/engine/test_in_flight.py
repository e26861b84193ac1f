"""How much a line keeps in flight, against a broker that serves one request after the other."""

from collections import deque

import pytest

from strait.engine.in_flight import BUSY_SECONDS, LEAST_BYTES, LEAST_REQUESTS, MOST_BYTES, InFlight

REQUEST_BYTES = 1 << 20


class Line:
    """An endless backlog over one line to a broker that takes ``pace`` bytes a second, with answers on their way for
    ``way_seconds``."""

    def __init__(self, pace: float, way_seconds: float, size: int = REQUEST_BYTES) -> None:
        self.pace, self.way_seconds, self.size = pace, way_seconds, size
        self.in_flight = InFlight()
        self.answered = 0
        self._now = self._free_at = 0.0
        self._answers: deque[tuple[float, float]] = deque()  # when each comes, and when its request was sent

    def run(self, seconds: float) -> None:
        until = self._now + seconds
        while self._now < until:
            while self._answers and self._answers[0][0] <= self._now:
                _, sent_at = self._answers.popleft()
                self.in_flight.answered(self.size, self._now - sent_at, self._now)
                self.answered += self.size
            while self.in_flight.has_room(self._now):
                self.in_flight.sent(self.size)
                self._free_at = max(self._free_at, self._now) + self.size / self.pace
                self._answers.append((self._free_at + self.way_seconds, self._now))
            self._now += 0.001


@pytest.mark.parametrize("way_seconds", [0.001, 0.03, 0.1, 0.3])
@pytest.mark.parametrize("pace", [5e6, 50e6, 150e6])
def test_the_broker_is_kept_busy_however_far_it_is(pace: float, way_seconds: float) -> None:
    line = Line(pace, way_seconds)
    line.run(5.0)
    before = line.answered
    line.run(10.0)
    assert line.answered - before >= 0.95 * 10.0 * pace


@pytest.mark.parametrize("way_seconds", [0.001, 0.1])
@pytest.mark.parametrize("pace", [5e6, 50e6, 150e6])
def test_what_comes_later_waits_a_moment_besides_the_way(pace: float, way_seconds: float) -> None:
    line = Line(pace, way_seconds)
    line.run(15.0)
    most = 1.25 * max(LEAST_BYTES, pace * (BUSY_SECONDS + 2 * way_seconds))
    assert line.in_flight.size <= most + REQUEST_BYTES


@pytest.mark.parametrize("way_seconds", [0.001, 0.1, 0.3])
@pytest.mark.parametrize("seconds", [0.002, 0.03])
def test_small_requests_of_which_each_takes_long_do_not_pile_up(seconds: float, way_seconds: float) -> None:
    """Whatever is asked over the same connection comes after them."""
    line = Line(1_000 / seconds, way_seconds, size=1_000)
    line.run(15.0)
    before = line.answered
    line.run(10.0)
    assert line.answered - before >= 0.95 * 10.0 * line.pace
    most = 1.25 * max(LEAST_REQUESTS, (BUSY_SECONDS + 2 * way_seconds) / seconds)
    assert line.in_flight.requests <= most + 1


def test_a_longer_way_is_learnt_within_minutes() -> None:
    """Followers that moved away: what was the shortest time is not any more."""
    line = Line(50e6, 0.01)
    line.run(5.0)
    line.way_seconds = 0.5
    line.run(600.0)
    before = line.answered
    line.run(10.0)
    assert line.answered - before >= 0.95 * 10.0 * 50e6


def test_a_broker_that_stands_still_holds_no_more_than_that() -> None:
    line = Line(1e9, 2.0)
    line.run(20.0)
    assert line.in_flight.size <= MOST_BYTES + REQUEST_BYTES


def test_what_is_lost_makes_room() -> None:
    in_flight = InFlight()
    in_flight.sent(LEAST_BYTES)
    assert not in_flight.has_room(0.0)
    in_flight.lost(LEAST_BYTES)
    assert in_flight.has_room(0.0)
