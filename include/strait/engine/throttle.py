"""Limits how fast a slot may copy: its share of the link's budget and of each topic class's, updated from the plan.

Fetching is limited, not sending: a batch that waits in memory would keep the whole reply that it came in, and so the
memory that topics without a budget need.
"""

from collections.abc import Iterable

from strait.state.schema import Budget

BURST_SECONDS = 0.25  # how much of a budget is requested at a time
SAVED_SECONDS = 1.0  # how much unused budget may be used later, so that a pause costs no rate


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
    """The budgets of one slot. Times are in seconds of the loop's clock."""

    def __init__(self) -> None:
        self._buckets: dict[str, _Bucket] = {}

    def __bool__(self) -> bool:
        """Return whether there is any budget."""
        return bool(self._buckets)

    def follow(self, budgets: Iterable[Budget], slot: int, now: float) -> None:
        """Apply the plan's current budgets; a debt under an unchanged budget remains."""
        rates = {
            budget.topic_class: budget.bytes_per_second * budget.slot_shares[slot]
            for budget in budgets
            if slot < len(budget.slot_shares) and budget.slot_shares[slot] > 0
        }
        for topic_class in self._buckets.keys() - rates.keys():
            del self._buckets[topic_class]
        for topic_class, rate in rates.items():
            bucket = self._buckets.get(topic_class)
            if bucket is None or bucket.bytes_per_second != rate:
                self._buckets[topic_class] = _Bucket(rate, now)

    def wait(self, topic_class: str, now: float) -> float:
        """Return the seconds until a topic of this class may be fetched; 0 means now."""
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
        names = ("", topic_class) if topic_class else ("",)
        return [bucket for name in names if (bucket := self._buckets.get(name)) is not None]
