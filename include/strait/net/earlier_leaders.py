"""Leaders of an earlier epoch than the newest known one, which brokers name in metadata."""

LAGGING_SECONDS = 10.0
"""A broker may lag behind the others. If brokers name an earlier leader for that long, and no later one, the partition's
epochs began again: a topic without an ID was deleted and created again."""


class EarlierLeaders:
    """Of one cluster's partitions: since when only earlier ones are named."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}

    def lasting(self, key: tuple[str, int], now: float, *, is_earlier: bool) -> bool:
        """A broker names a leader for this partition. Whether all have named earlier ones for long."""
        if not is_earlier:
            self._since.pop(key, None)
            return False
        if now - self._since.setdefault(key, now) < LAGGING_SECONDS:
            return False
        del self._since[key]
        return True
