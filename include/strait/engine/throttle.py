"""Limits how fast a slot may copy: its share of the link's budget, of each topic class's and of the backfill task
group's, and the hours of that task group, updated from the plan.

Fetching is limited, not sending: a batch that waits in memory would keep the whole reply that it came in, and so the
memory that topics without a budget need.
"""

from collections.abc import Callable, Iterable
from typing import Final

from strait.config.hours import Hours
from strait.state.schema import Budget, PlannedBackfill
from strait.waiting import unix_ms

BURST_SECONDS = 0.25  # how much of a budget is requested at a time
SAVED_SECONDS = 1.0  # how much unused budget may be used later, so that a pause costs no rate
CLOCK_SECONDS = 1.0
"""Interval at which the wall clock is read, since it may be set, while the task group has hours."""
_WHOLE: Final = None
"""Key of the budget of the whole task group."""


class _Bucket:
    """Fills at the allowed rate. Received data may overdraw it, once; the debt must be repaid first."""

    def __init__(self, bytes_per_second: float, now: float) -> None:
        self.bytes_per_second = bytes_per_second
        self._bytes = bytes_per_second * BURST_SECONDS
        self._at = now

    def wait(self, now: float) -> float:
        """Return the seconds until more may be requested; 0 means now."""
        full = self.bytes_per_second * SAVED_SECONDS
        self._bytes = min(full, self._bytes + (now - self._at) * self.bytes_per_second)
        self._at = now
        return 0.0 if self._bytes > 0 else -self._bytes / self.bytes_per_second + 1e-3

    def take(self, size: int) -> None:
        self._bytes -= size


class Throttle:
    """The budgets and hours of one slot. Times are in seconds of the loop's clock.

    Attributes:
        version: grows with each plan.
    """

    def __init__(self, clock_ms: Callable[[], int] = lambda: unix_ms()) -> None:
        self._clock_ms = clock_ms
        self.version = 0
        self._buckets: dict[str | None, _Bucket] = {}
        self._hours: Hours | None = None
        self._closed = False
        self._look_at = 0.0

    def __bool__(self) -> bool:
        """Return whether there is any limit."""
        return bool(self._buckets) or self._hours is not None

    def follow(self, budgets: Iterable[Budget], slot: int, now: float, backfill: PlannedBackfill | None = None) -> None:
        """Apply the plan's current limits; a debt under an unchanged budget remains."""
        self.version += 1
        limits: list[tuple[str | None, Budget]] = [(budget.topic_class, budget) for budget in budgets]
        if backfill is not None and backfill.budget is not None:
            limits.append((_WHOLE, backfill.budget))
        self._hours = None if backfill is None else backfill.opening
        self._look_at = now
        rates = {
            key: budget.bytes_per_second * budget.slot_shares[slot]
            for key, budget in limits
            if slot < len(budget.slot_shares) and budget.slot_shares[slot] > 0
        }
        for key in self._buckets.keys() - rates.keys():
            del self._buckets[key]
        for key, rate in rates.items():
            bucket = self._buckets.get(key)
            if bucket is None or bucket.bytes_per_second != rate:
                self._buckets[key] = _Bucket(rate, now)

    def closed(self, now: float) -> bool:
        """Return whether it is outside of the hours in which the slot may fetch."""
        if self._hours is None:
            return False
        if now >= self._look_at:
            self._closed = not self._hours.is_open(self._clock_ms())
            self._look_at = now + CLOCK_SECONDS
        return self._closed

    def wait(self, topic_class: str, now: float) -> float:
        """Return the seconds until a topic of this class may be fetched, or its hours are checked again; 0 means now."""
        if self.closed(now):
            return max(0.01, self._look_at - now)
        return max((bucket.wait(now) for bucket in self._of(topic_class)), default=0.0)

    def take(self, topic_class: str, size: int) -> None:
        """Charge ``size`` bytes that were received to the budgets of this class."""
        for bucket in self._of(topic_class):
            bucket.take(size)

    def bytes_at_once(self, topic_class: str) -> float | None:
        """Return how many bytes should come at a time at most, so that the rate is even; None: no limit."""
        rates = [bucket.bytes_per_second for bucket in self._of(topic_class)]
        return min(rates) * BURST_SECONDS if rates else None

    def _of(self, topic_class: str) -> list[_Bucket]:
        if not self._buckets:
            return []
        names = (_WHOLE, "", topic_class) if topic_class else (_WHOLE, "")
        return [bucket for name in names if (bucket := self._buckets.get(name)) is not None]
