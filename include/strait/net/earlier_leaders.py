"""Leaders of an earlier epoch than the newest known one, which brokers name in metadata."""

LAGGING_SECONDS = 10.0
"""A broker may lag behind the others. If brokers name an earlier leader for that long, and no later one, the epochs of a
partition of a topic without an ID began again: the topic was deleted and created again."""
LOST_SECONDS = 60.0
"""The same of a topic with an ID, which other brokers were asked for meanwhile: the controller has lost its last
decisions. To follow a leader for good that no broker names would leave the partition as it is."""


class EarlierLeaders:
    """Of one cluster's partitions: since when only earlier ones are named."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}

    def seconds(self, key: tuple[str, int], now: float, *, is_earlier: bool) -> float:
        """A broker names a leader for this partition. For how long all have named earlier ones."""
        if not is_earlier:
            self._since.pop(key, None)
            return 0.0
        return now - self._since.setdefault(key, now)

    def doubted(self, now: float) -> bool:
        """Whether a broker has named earlier leaders for so long that another one should be asked."""
        return any(LAGGING_SECONDS <= now - since < LOST_SECONDS for since in self._since.values())

    def believed(self, key: tuple[str, int]) -> None:
        """The earlier one counts from now on."""
        self._since.pop(key, None)
